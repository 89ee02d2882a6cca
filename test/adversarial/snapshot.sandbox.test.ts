import { snapshotSuite } from './snapshot-suite.ts';

snapshotSuite('local');
