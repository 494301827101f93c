// Sets the chosen theme before the first paint; a module would come too late and the page would flash.
try {
  const theme = localStorage.getItem('sluice.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Storage is forbidden; the system's theme it is.
}
