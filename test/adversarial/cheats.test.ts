import { cheats, honest } from './cheats.ts';
import { tryAll } from './suite.ts';
import { winning } from './winning.ts';

tryAll('local', { cheats, winning, honest });
