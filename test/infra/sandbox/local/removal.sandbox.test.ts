import { createUnshare } from '../../../../infra/sandbox/local/unshare.ts';
import { removalSuite } from './removal-suite.ts';

removalSuite('unshare', createUnshare);
