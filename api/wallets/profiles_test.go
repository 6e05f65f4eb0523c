package wallets

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"clobd/engine"
)

// TestProfiles: a change of the file is seen, nonsense changes nothing.
func TestProfiles(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	address := engine.Address{0: 'm', 19: 0xab}
	path := filepath.Join(t.TempDir(), "profiles.json")
	at := time.Unix(1_700_000_000, 0)
	write := func(text string) {
		must(os.WriteFile(path, []byte(text), 0o600))
		at = at.Add(time.Second)
		must(os.Chtimes(path, at, at))
	}
	wallet := address.Hex()
	write(`[{"proxyWallet":"` + wallet + `","name":"Max \"M\"","bio":"b","pseudonym":"p",` +
		`"profileImage":"https://x/1.png","profileImageOptimized":"https://x/2.png",` +
		`"displayUsernamePublic":true}]`)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	profiles, err := OpenProfiles(path, quiet)
	must(err)
	told := func(want string) {
		t.Helper()
		profiles.refresh()
		p := profiles.Of(address)
		got := strconv.AppendBool([]byte(`"displayUsernamePublic":`), p.Public)
		if got = p.append(got); !strings.Contains(string(got), want) {
			t.Errorf("%s\nhas no %s", got, want)
		}
	}
	told(`"displayUsernamePublic":true,"name":"Max \"M\"","pseudonym":"p",` +
		`"bio":"b","profileImage":"https://x/1.png","profileImageOptimized":"https://x/2.png"`)
	write(`[{"proxyWallet":"` + strings.ToUpper(wallet[2:]) + `"}]`)
	told(`"name":"Max`)
	write(`[{"proxyWallet":"` + wallet + `","name":"Moritz"}]`)
	told(`"displayUsernamePublic":false,"name":"Moritz","pseudonym":""`)
	must(os.Remove(path))
	told(`"name":"Moritz"`)
	write(`[]`)
	told(`"name":""`)
	for _, bad := range []string{
		``, `{}`, `[{"name":"x"}]`, `[{"proxyWallet":"0x12"}]`, `[] []`,
		`[{"proxyWallet":"` + wallet + `","nam":"x"}]`,
		`[{"proxyWallet":"` + wallet + `"},{"proxyWallet":"` + strings.ToUpper(wallet[2:]) + `"}]`,
		`[{"proxyWallet":"` + wallet + `"},{"proxyWallet":"` + wallet + `"}]`,
		`[{"proxyWallet":"` + wallet + `","bio":"` + strings.Repeat("b", 2001) + `"}]`,
	} {
		write(bad)
		if _, err := OpenProfiles(path, quiet); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%.80s: %v", bad, err)
		}
	}
	if _, err := OpenProfiles(path+"x", quiet); err == nil {
		t.Error("there is no such file")
	}
}
