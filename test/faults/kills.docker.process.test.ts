import { describeKills } from './kill-suite.ts';

// The parts that hold containers. The suite on PostgreSQL kills every part; the kills at random moments hit the dev server, too.
describeKills('docker', 3, { parts: ['host', 'gateway'], sandboxesAlone: true });
