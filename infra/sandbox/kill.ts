/** Killing by pid, where the process may be gone already. */
import { errorCode } from './failure.ts';

/** False if it was gone already. */
export function killPid(pid: number): boolean {
  try {
    process.kill(pid, 'SIGKILL');
    return true;
  } catch (error) {
    if (errorCode(error) === 'ESRCH') return false;
    throw error;
  }
}
