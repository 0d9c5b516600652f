import { html, useState } from './html.js';
import { Button } from './controls.js';

const NEXT = { system: 'light', light: 'dark', dark: 'system' };
const ICONS = { system: 'screen', light: 'sun', dark: 'moon' };
const NAMES = { system: 'as the system', light: 'light', dark: 'dark' };

// One button that goes through the three choices. theme.js holds the choice.
export function ThemeSwitch() {
  const [theme, setTheme] = useState(() => window.annulusTheme.chosen());
  const choose = () => {
    window.annulusTheme.choose(NEXT[theme]);
    setTheme(NEXT[theme]);
  };
  return html`<${Button} icon=${ICONS[theme]} label=${`Theme: ${NAMES[theme]}`} onClick=${choose} />`;
}
