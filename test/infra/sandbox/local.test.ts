import { sandboxContract } from './contract.ts';
import { localSubject } from './local-subject.ts';

sandboxContract(localSubject('local sandboxes'));
