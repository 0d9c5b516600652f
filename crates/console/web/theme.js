// Sets the colours of the page by what was chosen here, or else by the system.
(() => {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const stored = () => {
    try {
      return localStorage.getItem('annulus-theme');
    } catch {
      return null; // A browser may forbid storage.
    }
  };
  const apply = () => {
    const chosen = stored();
    const theme = chosen === 'light' || chosen === 'dark' ? chosen : dark.matches ? 'dark' : 'light';
    document.documentElement.dataset.theme = theme;
    window.dispatchEvent(new Event('annulus:theme'));
  };
  dark.addEventListener('change', apply);
  window.annulusTheme = {
    chosen: () => stored() ?? 'system',
    choose(theme) {
      try {
        if (theme === 'system') localStorage.removeItem('annulus-theme');
        else localStorage.setItem('annulus-theme', theme);
      } catch {
        // It holds for this page only.
        document.documentElement.dataset.theme = theme;
        return;
      }
      apply();
    },
  };
  apply();
})();
