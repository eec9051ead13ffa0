import { describe } from 'vitest';
import { JourneyWorld } from './journey-world.ts';
import { connection } from './journeys/connection.ts';
import { requests } from './journeys/requests.ts';
import { sessions } from './journeys/sessions.ts';
import { signIn } from './journeys/sign-in.ts';
import { truth } from './journeys/truth.ts';

/** User journeys end to end: the built dashboard, the real hub, the real Claude Code, a scripted model. */

const world = new JourneyWorld().register();

describe('signing in', () => signIn(world));
describe('requests', () => requests(world));
describe('sessions', () => sessions(world));
describe('what the page says', () => truth(world));
describe('the connection', () => connection(world));
