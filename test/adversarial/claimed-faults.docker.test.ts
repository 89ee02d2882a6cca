import { claimedFaultsSuite } from './claimed-faults.ts';

claimedFaultsSuite('docker');
