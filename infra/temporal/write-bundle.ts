import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { writeBundle } from './bundle.ts';

/** The program that bundles the checkout's workflows into the file that its argument names. */
const [, , target = ''] = process.argv;
await writeBundle(target).catch((error: unknown) => {
  console.error(errorMessage(error));
  process.exitCode = 1;
});
