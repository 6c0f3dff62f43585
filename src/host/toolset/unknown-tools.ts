/** Warns about names in channels.cli.tools_allow that match no tool, which are most likely typing errors. */

import { didYouMean } from '../../kit/text.ts'
import type { Log } from '../../runtime/port.ts'

export function warnOfUnknown(log: Log, wanted: readonly string[], known: readonly string[]): void {
  for (const name of wanted)
    if (!known.includes(name))
      log(
        'warn',
        `channels.cli.tools_allow names "${name}", which is no tool${didYouMean(name, known) || `; there are: ${known.join(', ')}`}`,
      )
}
