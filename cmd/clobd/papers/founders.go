package papers

import (
	"errors"
	"fmt"
	"strings"
)

// Founder is one of the first members of a cluster, with its data folder.
type Founder struct {
	Fellow
	Data string
}

// Place parses NAME@HOST:PORT.
func Place(text string) (name, address string, err error) {
	name, address, is := strings.Cut(text, "@")
	if !is || name == "" || address == "" {
		err = fmt.Errorf("%q is not NAME@HOST:PORT", text)
	}
	return name, address, err
}

// Founders parses the first members of a cluster: first is NAME@HOST:PORT of the voter in the
// folder data, each further voter and gateway is NAME@HOST:PORT=FOLDER. The error names every
// fault.
func Founders(first, data string, voters, gateways []string) (all []Founder, err error) {
	add := func(text string, gateway bool) {
		place, data, _ := strings.Cut(text, "=")
		name, address, wrong := Place(place)
		if wrong == nil && data == "" {
			wrong = fmt.Errorf("%q is not NAME@HOST:PORT=FOLDER", text)
		}
		err = errors.Join(err, wrong)
		for _, f := range all {
			if f.Name == name || f.Address == address || f.Data == data {
				err = errors.Join(err, fmt.Errorf("%q has the name, the address or the folder of %s", text,
					f.Name))
			}
		}
		all = append(all, Founder{Fellow{Name: name, ID: uint64(len(all) + 1), Address: address,
			Gateway: gateway}, data})
	}
	add(first+"="+data, false)
	for _, text := range voters {
		add(text, false)
	}
	if n := len(all); n != 1 && n != 3 && n != 5 {
		err = errors.Join(err, fmt.Errorf("%d voters: there must be 1, 3 or 5", n))
	}
	for _, text := range gateways {
		add(text, true)
	}
	return all, err
}
