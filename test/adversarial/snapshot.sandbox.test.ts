import { hostileTreesSuite } from './hostile-trees.ts';
import { snapshotSuite } from './snapshot-suite.ts';

snapshotSuite('local');
hostileTreesSuite('local');
