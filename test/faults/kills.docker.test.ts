import { describeKills } from './kill-suite.ts';

describeKills('docker', 8);
