/** Implements `home prune`. */

import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { openHost } from '../../../host/open/open-host.ts'
import { prunable, pruneHome } from '../../../host/records/backup/prune-home.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { count } from '../../../kit/count.ts'
import type { Command, Flags } from '../../args/command.ts'
import { jsonFlag } from '../../args/flags.ts'
import { CliExit, exitCodes, usageError } from '../../exit.ts'
import { progressOn } from '../../progress-line.ts'

const flags = {
  days: { type: 'whole', min: 1, max: 36_500, setting: 'memory.retention_days', about: 'Delete what is older than so many days' },
  yes: { type: 'boolean', about: 'Really; without it the command only counts' },
  ...jsonFlag,
} as const satisfies Flags
const dayMs = 86_400_000

export const prune = {
  flags,
  examples: [
    ['--days 365', 'count what is older than a year'],
    ['--days 365 --yes', 'delete it; there is no way back'],
  ],
  details:
    () => `A conversation is as old as its last turn. Its texts, its runs and its place in the search are deleted; its receipts stay and
still verify, and one receipt more says that it was deleted. Lines in the files of agents stay: those files are yours.`,
  exits: [9, 130],
  async run(context, { days: given, yes = false, json = false }) {
    const setup = loadSetup(context)
    const days = given ?? setup.config.memory.retentionDays
    if (days === undefined) throw usageError('say how old with --days, or set memory.retention_days')
    const host = openHost(setup, { ahead: false })
    const interrupt = onInterrupt(() => {})
    const progress = progressOn(context, 'pruning')
    try {
      const { conversations } = await host.records()
      const wanted = { conversations, before: Date.now() - days * dayMs }
      const { stdout } = context.process
      if (!yes) {
        const found = prunable(wanted).length
        if (json) return void stdout.write(`${JSON.stringify({ days, conversations: found, deleted: false })}\n`)
        return void stdout.write(
          `${count(found, 'conversation')} older than ${count(days, 'day')}; --yes deletes what was said there for good\n`,
        )
      }
      const done = await pruneHome({ ...wanted, progress, signal: interrupt.signal })
      progress(1)
      if (json) stdout.write(`${JSON.stringify({ days, ...done, deleted: true })}\n`)
      else stdout.write(`deleted ${count(done.conversations, 'conversation')} (${count(done.turns, 'turn')}); receipts stay\n`)
      for (const id of done.underWay) context.process.stderr.write(`note: ${id} was kept, because a run of it has not ended\n`)
      if (interrupt.signal.aborted) throw new CliExit(exitCodes.cancelled)
    } finally {
      progress(1)
      interrupt.stop()
      await host.close()
    }
  },
} as const satisfies Command<typeof flags>
