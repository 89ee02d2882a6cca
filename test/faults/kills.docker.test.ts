import { describeKills } from './kill-suite.ts';

// The parts that hold containers, and the dev server, which the suite on PostgreSQL does without. That one kills every part.
describeKills('docker', 5, { parts: ['host', 'gateway', 'temporal'] });
