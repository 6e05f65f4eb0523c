package report

import (
	"bytes"
	_ "embed" // the page and its style
	"fmt"
	"html/template"
	"os"
	"path/filepath"
)

//go:embed page.html
var pageText string

//go:embed page.css
var styleText string

// Page makes one HTML page of the chapters, in their order.
func Page(title string, chapters []*Chapter) ([]byte, error) {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	var out bytes.Buffer
	err = t.Execute(&out, struct {
		Title    string
		Style    template.CSS
		Chapters []*Chapter
	}{title, template.CSS(styleText), chapters})
	if err != nil {
		return nil, fmt.Errorf("fill the page: %w", err)
	}
	return out.Bytes(), nil
}

// WritePage writes a page of the results to file.
func WritePage(file, title string, results ...any) error {
	var chapters []*Chapter
	for _, result := range results {
		c, err := ChapterOf(result)
		if err != nil {
			return fmt.Errorf("make %s: %w", file, err)
		}
		chapters = append(chapters, c)
	}
	b, err := Page(title, chapters)
	if err != nil {
		return fmt.Errorf("make %s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}
