import { createBubblewrap } from '../../../../infra/sandbox/local/bubblewrap.ts';
import { removalSuite } from './removal-suite.ts';

removalSuite('bubblewrap', createBubblewrap);
