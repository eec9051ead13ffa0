import { render } from 'preact';
import { App } from './app.tsx';
import { followOtherTabs } from './api/sign-in.ts';
import { follow } from './model/hub.ts';
import { followPush } from './model/push.ts';
import { signInByLink } from './model/sign-in-flow.ts';
import { loadRichParts } from './parts/rich.tsx';

const root = document.getElementById('app');
if (!root) throw new Error('the page has no root');

followOtherTabs();
signInByLink();
follow();
followPush();
render(<App />, root);
loadRichParts();
