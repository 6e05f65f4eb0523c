// The scheme that the reader chose, before anything is painted. Without a choice the system's counts.
{
	let chosen = null;
	try {
		chosen = localStorage.getItem("console.theme");
	} catch { /* a browser that keeps nothing */ }
	if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
