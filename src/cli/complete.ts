/** What the completion scripts ask for: one candidate a line. */

import { proposeCompletions } from '@stricli/core'
import type { CliContext } from '../channels/terminal/context.ts'
import { createApp } from './args/parse-args.ts'

/** Flags without a command are the filter's. */
function withCommand(words: readonly string[]): readonly string[] {
  return words[0]?.startsWith('-') ? ['filter', ...words] : words
}

/** With its meaning, where the shell shows one. */
export async function complete(context: CliContext, shell: string, words: readonly string[]): Promise<void> {
  const found = await proposeCompletions(createApp([]), withCommand(words), context)
  const between = shell === 'zsh' ? ':' : '\t'
  for (const { completion: word, brief } of found) {
    context.process.stdout.write(
      shell === 'bash' ? `${word}\n` : `${word.replaceAll(':', '\\:')}${between}${brief.replaceAll('\n', ' ')}\n`,
    )
  }
}
