import { createUnshare } from '../../../../infra/sandbox/local/unshare.ts';
import { unprivilegedSuite } from './unprivileged-suite.ts';

unprivilegedSuite('unshare', 'test/infra/sandbox/local/unprivileged.sandbox.test.ts', createUnshare);
