import { fullSuite } from './full-suite.ts';

// In its own sandbox the first is ended several times, after a minute each.
fullSuite('docker', ['hold same']);
