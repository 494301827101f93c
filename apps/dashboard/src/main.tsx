// The page begins here: who are we, then everything else.
import { render } from 'preact';
import { App } from './app.js';
import { followKeys } from './keyboard.js';
import { followAddress } from './place.js';
import { followSystemTheme } from './theme.js';

followAddress();
followKeys();
followSystemTheme();
render(<App />, document.getElementById('app')!);
