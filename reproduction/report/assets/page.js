"use strict";
(() => {
  const content = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const config = { displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] };
  let printing = false;

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Where a legend begins, in heights of the plot: under the title of the axis, however little of the height it leaves.
  function below(figure, width, height) {
    return -52 / Math.max(100, height - 86 - 19 * legendRows(figure, width));
  }
  function legendRows(figure, width) {
    const named = figure.traces.filter((trace) => trace.showlegend !== false).map((trace) => trace.name || "");
    const wide = 45 + 6.2 * Math.max(0, ...named.map((name) => name.length));
    return Math.ceil(named.length / Math.max(1, Math.floor((width - 64) / wide)));
  }

  // A text in lines of at most so many letters.
  function wrapped(text, most) {
    const lines = [""];
    for (const word of text.split(" ")) {
      const line = lines[lines.length - 1];
      if (line && line.length + word.length >= most) lines.push(word);
      else lines[lines.length - 1] = line ? `${line} ${word}` : word;
    }
    return lines.join("<br>");
  }

  // In a narrow plot a map with more columns than rows stands upright, so that its cells have room for their numbers.
  function shaped(figure, width) {
    const [map] = figure.traces;
    if (width >= 480 || !map || map.type !== "heatmap" || map.x.length <= map.y.length) return figure;
    const turned = (cells) => map.x.map((_, j) => cells.map((line) => line[j]));
    const upright = { ...map, x: map.y, y: map.x, z: turned(map.z), text: turned(map.text) };
    return { ...figure, traces: [upright], xaxis: figure.yaxis, yaxis: figure.xaxis };
  }

  function layout(figure, width, height) {
    const palette = dark.matches && !printing ? content.dark : content.light;
    const bars = figure.traces.some((trace) => trace.type === "bar");
    // One label a decade on a logarithmic axis, unless there is less than a decade to label, or no room.
    const inside = height - 86 - 19 * legendRows(figure, width);
    const labels = { x: 8, y: Math.max(2, Math.min(8, Math.floor(inside / 24))) };
    const decades = (name) => {
      const values = figure.traces.flatMap((trace) => trace[name] || []).filter((v) => typeof v === "number" && v > 0);
      return values.length ? Math.log10(Math.max(...values) / Math.min(...values)) : 0;
    };
    // Below two decades also 2 and 5 times a power of ten, written out.
    const between = (name) => {
      const values = figure.traces.flatMap((trace) => trace[name] || []).filter((v) => typeof v === "number" && v > 0);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      if (!values.length || low < 1e-3 || high > 1e5 || high / low >= 100) return {};
      const ticks = [];
      for (let k = -4; k <= 6; k++) ticks.push(...[1, 2, 5].map((digit) => Number(`${digit}e${k}`)));
      const tickvals = ticks.filter((v) => v >= low / 2 && v <= 2 * high);
      return { tickmode: "array", tickvals, ticktext: tickvals.map((v) => v.toLocaleString("en")) };
    };
    const axis = (given, name) => ({
      title: { text: wrapped(given.title, (name === "x" ? width - 60 : height - 90) / 7), font: { size: 13 }, standoff: 8 },
      type: given.type,
      gridcolor: css("--grid"),
      linecolor: css("--line"),
      zeroline: false,
      automargin: true,
      exponentformat: "power",
      ...(given.type === "log" && decades(name) >= 1 ? { dtick: Math.max(1, Math.ceil(decades(name) / labels[name])) } : {}),
      ...(given.type === "log" ? between(name) : {}),
    });
    return {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: css("--ink") },
      margin: { l: 54, r: 10, t: bars ? 34 + 19 * legendRows(figure, width) : 34, b: 44 },
      width,
      height,
      autosize: false,
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--quiet"), activecolor: css("--ink") },
      xaxis: axis(figure.xaxis, "x"),
      yaxis: axis(figure.yaxis, "y"),
      barmode: "group",
      hovermode: "closest",
      hoverlabel: { namelength: -1 },
      showlegend: figure.traces.every((trace) => trace.type !== "heatmap"),
      legend: { orientation: "h", traceorder: "normal", x: 0, font: { size: width < 480 ? 11 : 12 }, maxheight: 0.9,
        ...(bars ? { y: 1.02, yanchor: "bottom" } : { y: below(figure, width, height) }) }, // names of bars may need the room below
      shapes: figure.marks.map((mark) => ({
        type: "line", xref: "x", yref: "paper", x0: mark.x, x1: mark.x, y0: 0, y1: 1,
        line: { color: palette[mark.colour], dash: "dot", width: 1.5 },
      })),
    };
  }

  // The size of the numbers in a map: what fits between the names of its rows and the right edge.
  function cellFont(map, width) {
    const longest = (texts) => Math.max(...texts.flatMap((text) => text.split("<br>")).map((line) => line.length));
    const cell = (width - 50 - 6.8 * longest(map.y)) / map.x.length;
    return Math.max(6, Math.min(11, cell / (0.62 * longest(map.text.flat()))));
  }

  function traces(figure, width) {
    const palette = dark.matches && !printing ? content.dark : content.light;
    const faint = (colour) => `${palette[colour]}2e`; // behind the line
    return figure.traces.map(({ colour, band, ...trace }) => {
      if (trace.type === "heatmap") {
        trace.text = trace.text.map((line) => line.map((text) => text.replace("not ", "not<br>")));
        return { ...trace, colorscale: [[0, `${palette[1]}55`], [0.5, `${palette[6]}33`], [1, `${palette[2]}55`]], textfont: { color: css("--ink"), size: cellFont(trace, width) } };
      }
      return {
        ...trace,
        ...(band ? { fillcolor: faint(colour) } : {}),
        line: trace.line && { ...trace.line, color: palette[colour] },
        marker: { ...(trace.marker || {}), color: palette[colour] },
      };
    });
  }

  // More than five lines of the legend would leave too little for the axes, and more than five rows of a map for each.
  function moreRoom(figure, width) {
    const [map] = figure.traces;
    if (map && map.type === "heatmap") return Math.max(0, 38 * (map.y.length - 5));
    return 19 * Math.max(0, legendRows(figure, width) - 5);
  }

  const plots = [...document.querySelectorAll(".plot")];
  async function draw(plot) {
    // On paper the size is the style sheet's own: the page has not been laid out for it yet.
    plot.style.height = "";
    const [width, least] = printing ? [325, 300] : [plot.clientWidth, plot.clientHeight];
    const figure = shaped(content.figures[plot.dataset.key], width);
    const height = least + moreRoom(figure, width);
    plot.style.height = `${height}px`;
    plot.dataset.width = width;
    await Plotly.react(plot, traces(figure, width), layout(figure, width, height), config);
    plot.dataset.drawn = "yes";
  }
  async function drawAll() {
    for (const plot of plots) await draw(plot);
    document.documentElement.dataset.ready = "yes";
  }
  dark.addEventListener("change", drawAll);
  const watch = new ResizeObserver((seen) => {
    for (const { target } of seen) {
      if (!printing && target.dataset.drawn && Math.abs(target.clientWidth - Number(target.dataset.width)) > 1) draw(target);
    }
  });
  plots.forEach((plot) => watch.observe(plot));
  addEventListener("beforeprint", () => { printing = true; plots.forEach(draw); }); // at once: nobody waits for promises
  addEventListener("afterprint", () => { printing = false; drawAll(); });

  const table = document.querySelector("#summary table");
  const body = table.tBodies[0];
  const headings = [...table.querySelectorAll("th")];
  function key(row, name) {
    if (name === "order" || name === "verdict") return Number(row.dataset[name]);
    return row.querySelector(`td[data-label="${name}"]`).textContent.trim().toLowerCase();
  }
  function sort(name, down) {
    const rows = [...body.rows];
    rows.sort((a, b) => {
      const [x, y] = [key(a, name), key(b, name)];
      const sign = typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true });
      return (down ? -sign : sign) || Number(a.dataset.order) - Number(b.dataset.order);
    });
    body.append(...rows);
    for (const th of headings) {
      if (th.dataset.sort === name) th.setAttribute("aria-sort", down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    }
  }
  for (const th of headings) {
    th.querySelector("button").addEventListener("click", () => sort(th.dataset.sort, th.getAttribute("aria-sort") === "ascending"));
  }
  // report.html?sort=verdict opens the page sorted.
  const wanted = new URLSearchParams(location.search).get("sort");
  if (headings.some((th) => th.dataset.sort === wanted)) sort(wanted, false);

  drawAll();
})();
