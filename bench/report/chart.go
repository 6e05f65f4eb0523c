package report

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// ink is a colour of the style sheet. A chart is drawn with stand-ins, which become variables.
type ink int

// The inks. text and faint are those of axes and grid lines. The veils let lines behind them be
// seen.
const (
	text ink = iota
	faint
	first
	second
	third
	alarm
	veil
	alarmVeil
	inks
)

// stand is the colour that stands for the ink while the chart is drawn.
func (i ink) stand() color.RGBA { return color.RGBA{1, 2, uint8(3 + i), 255} }

// class is the name of the ink in the style sheet.
func (i ink) class() string {
	return [...]string{"text", "faint", "first", "second", "third", "alarm", "veil",
		"alarm-veil"}[i]
}

// spot is in the units of the axes.
type spot struct{ x, y float64 }

// graph is a row of points that are joined.
type graph struct {
	name   string
	ink    ink
	at     []spot
	dots   bool // each point is marked
	dashed bool
}

// mark is a span of the x axis in which something happened.
type mark struct {
	from, to float64
	ink      ink
}

// chart is a picture to be drawn. An axis that is logarithmic shows nothing at or below 0.
type chart struct {
	caption    string
	xName      string
	yName      string
	logX, logY bool
	xTicks     func(least, most float64) []plot.Tick
	yTicks     func(least, most float64) []plot.Tick
	lines      []graph
	marks      []mark
	markNames  []legendEntry
	broke      []spot
}

// The size of a picture in its own units. It is as wide as a telephone, so that its letters can be
// read there; on a wider screen it grows.
const (
	width    = 400 * vg.Length(1)
	height   = 240 * vg.Length(1)
	fontSize = 11
)

// picture draws the chart. A chart without two points to join has none: ok is false.
func (c *chart) picture() (p picture, ok bool, err error) {
	drawn := plot.New()
	style(drawn)
	drawn.X.Label.Text, drawn.Y.Label.Text = c.xName, c.yName
	scale(&drawn.X, c.logX, c.xTicks)
	scale(&drawn.Y, c.logY, c.yTicks)
	lattice := plotter.NewGrid()
	lattice.Vertical.Color, lattice.Horizontal.Color = faint.stand(), faint.stand()
	drawn.Add(lattice)
	for _, m := range c.marks {
		drawn.Add(&m)
	}
	for i := range c.lines {
		l := &c.lines[i]
		joined, err := c.join(drawn, l)
		if err != nil {
			return p, false, err
		}
		if joined && l.name != "" {
			p.Legend = append(p.Legend, legendEntry{l.ink.class(), l.name})
		}
		ok = ok || joined
	}
	if !ok {
		return p, false, nil
	}
	if err := c.breaks(drawn); err != nil {
		return p, false, err
	}
	if !c.logY {
		drawn.Y.Min = min(drawn.Y.Min, 0)
	}
	p.Legend = append(p.Legend, c.markNames...)
	if len(c.broke) > 0 {
		p.Legend = append(p.Legend, legendEntry{alarm.class(), "broke"})
	}
	p.Caption = c.caption
	p.SVG = svg(drawn, c.caption, height)
	return p, true, nil
}

// join adds a line; false if it has fewer than two points.
func (c *chart) join(to *plot.Plot, l *graph) (bool, error) {
	var all plotter.XYs
	for _, p := range l.at {
		if usable(p.x, c.logX) && usable(p.y, c.logY) {
			all = append(all, plotter.XY{X: p.x, Y: p.y})
		}
	}
	if len(all) < 2 && !(l.dots && len(all) == 1) {
		return false, nil
	}
	drawn, dots, err := plotter.NewLinePoints(all)
	if err != nil {
		return false, fmt.Errorf("draw %s: %w", c.caption, err)
	}
	drawn.Color, drawn.Width = l.ink.stand(), 1.6
	if l.dashed {
		drawn.Dashes = []vg.Length{4, 3}
	}
	to.Add(drawn)
	if l.dots {
		dots.Color, dots.Shape, dots.Radius = l.ink.stand(), draw.CircleGlyph{}, 2.6
		to.Add(dots)
	}
	return true, nil
}

// breaks adds the points at which something broke.
func (c *chart) breaks(to *plot.Plot) error {
	var all plotter.XYs
	for _, p := range c.broke {
		if usable(p.x, c.logX) && usable(p.y, c.logY) {
			all = append(all, plotter.XY{X: p.x, Y: p.y})
		}
	}
	if len(all) == 0 {
		return nil
	}
	drawn, err := plotter.NewScatter(all)
	if err != nil {
		return fmt.Errorf("draw %s: %w", c.caption, err)
	}
	drawn.Color, drawn.Shape, drawn.Radius = alarm.stand(), draw.CircleGlyph{}, 4.5
	to.Add(drawn)
	return nil
}

// usable reports whether a value can be drawn: a finite one, on a logarithmic axis above 0.
func usable(v float64, logarithmic bool) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (v > 0 || !logarithmic)
}

// Plot draws the span: a line if it is short.
func (m *mark) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	from, to := x(max(m.from, p.X.Min)), x(min(m.to, p.X.Max))
	if m.to < p.X.Min || m.from > p.X.Max {
		return
	}
	to = max(to, from+1.2)
	c.FillPolygon(m.ink.stand(), []vg.Point{{X: from, Y: c.Min.Y}, {X: to, Y: c.Min.Y},
		{X: to, Y: c.Max.Y}, {X: from, Y: c.Max.Y}})
}

// style sets letters and lines.
func style(p *plot.Plot) {
	p.BackgroundColor = nil // the page has its own
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.LineStyle.Width = text.stand(), 0.6
		axis.Tick.Color, axis.Tick.LineStyle.Width = text.stand(), 0.6
		axis.Tick.Length = 4
		axis.Tick.Label.Color, axis.Label.TextStyle.Color = text.stand(), text.stand()
		for _, f := range []*font.Font{&axis.Tick.Label.Font, &axis.Label.TextStyle.Font} {
			f.Variant, f.Size = "Sans", fontSize
		}
	}
}

// scale sets up an axis.
func scale(a *plot.Axis, logarithmic bool, ticks func(least, most float64) []plot.Tick) {
	if logarithmic {
		a.Scale, a.AutoRescale = plot.LogScale{}, true
	}
	if ticks == nil {
		ticks = plainTicks
	}
	a.Tick.Marker = plot.TickerFunc(ticks)
}

// plainTicks are those of counts and rates.
func plainTicks(least, most float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(least, most)
	for i := range ticks {
		if ticks[i].Label == "" {
			continue
		}
		if v := ticks[i].Value; math.Abs(v) >= 1e4 {
			ticks[i].Label = fmt.Sprintf("%g k", v/1e3)
		}
	}
	return ticks
}

// timeTicks are those of a logarithmic axis of µs: 1, 2 and 5 of each power of ten.
func timeTicks(least, most float64) (ticks []plot.Tick) {
	wide := math.Log10(most/least) > 2.5
	for e := math.Floor(math.Log10(least)); e <= math.Ceil(math.Log10(most)); e++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, e)
			if v < least*0.999 || v > most*1.001 {
				continue
			}
			t := plot.Tick{Value: v, Label: micros(v)}
			if wide && m > 1 {
				t.Label = ""
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// shareTicks are those of an axis of 1/(1-p).
func shareTicks(least, most float64) (ticks []plot.Tick) {
	for i, name := range []string{"0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"} {
		if v := math.Pow(10, float64(i)); v <= most*1.001 && v >= least*0.999 {
			ticks = append(ticks, plot.Tick{Value: v, Label: name})
		}
	}
	return ticks
}

// svg draws a plot, to be a part of an HTML page: without a prolog, in the colours of its style
// sheet, and with its letters as text.
func svg(p *plot.Plot, caption string, tall vg.Length) template.HTML {
	canvas := vgsvg.New(width, tall)
	area := draw.New(canvas)
	p.Draw(draw.Crop(area, 2, -14, 2, -6))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		panic("BUG: write to memory: " + err.Error())
	}
	drawn := out.String()
	_, body, _ := strings.Cut(drawn[strings.Index(drawn, "<svg"):], ">")
	body = strings.ReplaceAll(body, "font-family:Liberation Sans",
		"font-family:Liberation Sans,Arial,Helvetica,sans-serif")
	for i := range inks {
		c := i.stand()
		body = strings.ReplaceAll(body, fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B),
			"var(--"+i.class()+")")
	}
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`,
		width.Points(), tall.Points(), html.EscapeString(caption)) + body)
}

// shortened is a name that leaves room for its bar.
func shortened(name string) string {
	const most = 18
	if letters := []rune(name); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return name
}

// bars is a chart of one horizontal bar for each name.
func bars(caption, axis string, names []string, values []float64) (picture, error) {
	p := plot.New()
	style(p)
	p.X.Label.Text = axis
	scale(&p.X, false, nil)
	var reversed []string
	var lengths plotter.Values
	for i := len(names) - 1; i >= 0; i-- { // the first one on top
		// Another family of letters may be a little wider than the one that was measured: blanks are
		// room for that.
		reversed, lengths = append(reversed, shortened(names[i])+"  "), append(lengths, values[i])
	}
	drawn, err := plotter.NewBarChart(lengths, 12)
	if err != nil {
		return picture{}, fmt.Errorf("draw %s: %w", caption, err)
	}
	drawn.Horizontal, drawn.Color, drawn.LineStyle.Width = true, first.stand(), 0
	p.Add(drawn)
	p.NominalY(reversed...)
	p.X.Min = 0
	tall := vg.Length(60 + 20*len(names))
	return picture{SVG: svg(p, caption, tall), Caption: caption}, nil
}
