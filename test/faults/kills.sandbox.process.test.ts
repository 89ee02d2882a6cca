import { describeKills } from './kill-suite.ts';

describeKills('local', 8);
