import { createBubblewrap } from '../../../../infra/sandbox/local/bubblewrap.ts';
import { unprivilegedSuite } from './unprivileged-suite.ts';

unprivilegedSuite('bubblewrap', 'test/infra/sandbox/local/unprivileged.bubblewrap.test.ts', createBubblewrap);
