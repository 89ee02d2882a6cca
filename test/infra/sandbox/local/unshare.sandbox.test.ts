import { createUnshare } from '../../../../infra/sandbox/local/unshare.ts';
import { sandboxContract } from '../contract.ts';
import { localSubject } from './subject.ts';

sandboxContract(localSubject('local sandboxes without bubblewrap', { confine: createUnshare }));
