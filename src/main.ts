/** Starts the executable. It answers `--version` before it loads anything else, and loads all that a turn needs in one step. */

import { version } from '../package.json'

if (import.meta.main) await run(process.argv.slice(2))

async function run(words: readonly string[]): Promise<void> {
  if (words.length === 1 && (words[0] === '--version' || words[0] === '-v')) {
    console.log(version)
    process.exit(0)
  }
  await (await import('./cli/start.ts')).start(words)
}
