import { sandboxContract } from '../contract.ts';
import { localSubject } from './subject.ts';

sandboxContract(localSubject('local sandboxes'));
