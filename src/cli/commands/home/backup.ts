/** Implements `home backup | restore | prune`. */

import { dirname, resolve } from 'node:path'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { onInterrupt } from '../../../channels/terminal/signals.ts'
import { homePaths } from '../../../config/paths.ts'
import { openHost } from '../../../host/open/open-host.ts'
import { withMemory } from '../../../host/open/open-records.ts'
import { restoreArchive, writeArchive } from '../../../host/records/backup/archive.ts'
import type { Progress } from '../../../host/records/backup/manifest.ts'
import { prunable, pruneHome } from '../../../host/records/backup/prune-home.ts'
import type { OpenCopy } from '../../../host/records/backup/write-backup.ts'
import { pruneRuns } from '../../../host/run/wiggum/run-copy.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { atAsyncEnd } from '../../../kit/errors.ts'
import { count } from '../../../kit/text.ts'
import { command } from '../../args/command.ts'
import { jsonFlag } from '../../args/turn-flags.ts'
import { CliExit, exitCodes, usageError } from '../../exit.ts'
import { printOne, progressOn } from '../../print-list.ts'

export const backup = command({
  flags: { withKeys: { type: 'boolean', about: 'Also the files with API keys' }, ...jsonFlag },
  args: { target: { type: 'text', about: 'A folder that is empty or does not exist yet, or a new file NAME.tar.gz' } },
  examples: [
    ['~/backups/monday', 'a folder'],
    ['/mnt/disk/braidclaw.tar.gz --with-keys', 'one file, with the API keys'],
  ],
  details: () => `The copy has the receipt key, without which no receipt can be checked; keep it as safe as the home itself.
Files with API keys are left out unless you say --with-keys. The workspace is not part of the home.`,
  exits: [9, 130],
  async run(context, { withKeys = false, json = false }, { target }) {
    const setup = loadSetup(context)
    const { stdout, stderr } = context.process
    await interruptible(context, 'copying', async (progress, signal) => {
      const { manifest, bytes } = await withMemory(setup, (memory) =>
        writeArchive({ setup, memory, openCopy: copiesBy(setup), target: resolve(context.cwd, target), withKeys, progress, signal }),
      )
      const { files, receipts, left_out: leftOut } = manifest
      if (json) return stdout.write(`${JSON.stringify({ target: resolve(context.cwd, target), bytes, ...manifest })}\n`)
      const told = receipts ? `, ${count(receipts.count, 'receipt')}` : ''
      stdout.write(`backed up ${manifest.home}: ${count(files.length, 'file')}, ${Math.ceil(bytes / 1024)} KiB${told}\n`)
      if (leftOut.length > 0)
        stderr.write(`note: ${count(leftOut.length, 'path')} left out (links, special files, backups); the manifest names them\n`)
    })
  },
})

export const restore = command({
  flags: { to: { type: 'text', about: 'The home to be (default: this one); it must be empty' }, ...jsonFlag },
  args: { backup: { type: 'text', about: 'What "home backup" wrote' } },
  examples: [
    ['~/backups/monday', 'into the home, which must be empty'],
    ['backup.tar.gz --to /srv/braidclaw', 'elsewhere; then BRAIDCLAW_HOME=/srv/braidclaw'],
  ],
  exits: [9, 130],
  async run(context, { to, json = false }, { backup: from }) {
    const setup = loadSetup(context)
    const target = to === undefined ? setup.paths.home : resolve(context.cwd, to)
    await interruptible(context, 'restoring', async (progress, signal) => {
      const manifest = await restoreArchive({ openCopy: copiesBy(setup), backup: resolve(context.cwd, from), target, progress, signal })
      const { stdout, stderr } = context.process
      if (json) return stdout.write(`${JSON.stringify({ target, ...manifest })}\n`)
      stdout.write(`restored ${count(manifest.files.length, 'file')} to ${target}, as of ${manifest.made}\n`)
      if (!manifest.with_keys) stderr.write('note: the backup has no API keys; set them again, or run "braidclaw onboard"\n')
      stderr.write('to check it: braidclaw rebuild --check, braidclaw receipt verify\n')
    })
  },
})

function copiesBy({ config, log }: CliSetup): OpenCopy {
  return (path, use) => {
    const paths = homePaths(dirname(path))
    return withMemory(
      { log, paths, config: { ...config, memory: { ...config.memory, path }, receipts: { ...config.receipts, path: paths.receipts } } },
      use,
    )
  }
}

type Work = (progress: Progress, signal: AbortSignal) => Promise<unknown>

/** Shows the progress; Ctrl-C ends the work, and nothing is left of it. */
async function interruptible(context: CliContext, what: string, work: Work): Promise<void> {
  const interrupt = onInterrupt(() => {})
  const progress = progressOn(context, what)
  try {
    await work(progress, interrupt.signal)
  } catch (error) {
    if (interrupt.signal.aborted) throw new CliExit(exitCodes.cancelled, 'cancelled; nothing was written')
    throw error
  } finally {
    progress(1)
    interrupt.stop()
  }
}

const dayMs = 86_400_000

export const prune = command({
  flags: {
    days: { type: 'whole', min: 1, max: 36_500, setting: 'memory.retention_days', about: 'Delete what is older than so many days' },
    yes: { type: 'boolean', about: 'Really; without it the command only counts' },
    ...jsonFlag,
  },
  examples: [
    ['--days 365', 'count what is older than a year'],
    ['--days 365 --yes', 'delete it; this cannot be undone'],
  ],
  details:
    () => `A conversation is as old as its last turn. Its texts, its runs and its place in the search are deleted; its receipts stay and
still verify, and one receipt more says that it was deleted. Lines in the files of agents stay: those files are yours.`,
  exits: [9, 130],
  async run(context, { days: given, yes = false, json = false }) {
    const setup = loadSetup(context)
    const days = given ?? setup.config.memory.retentionDays
    if (days === undefined) throw usageError('say how old with --days, or set memory.retention_days')
    const host = await openHost(setup, { ahead: false })
    const interrupt = onInterrupt(() => {})
    const progress = progressOn(context, 'pruning')
    await using _end = atAsyncEnd(async () => {
      progress(1)
      interrupt.stop()
      await host.close()
    })
    const { conversations } = await host.records()
    const wanted = { conversations, before: Date.now() - days * dayMs }
    if (!yes) {
      const found = prunable(wanted).length
      const text = `${count(found, 'conversation')} older than ${count(days, 'day')}; --yes deletes what was said there for good\n`
      return printOne(context, { json, value: { days, conversations: found, deleted: false }, text })
    }
    await pruneRuns(host, wanted.before)
    const done = await pruneHome({ ...wanted, progress, signal: interrupt.signal })
    progress(1)
    const text = `deleted ${count(done.conversations, 'conversation')} (${count(done.turns, 'turn')}); receipts stay\n`
    printOne(context, { json, value: { days, ...done, deleted: true }, text })
    for (const id of done.underWay) context.process.stderr.write(`note: ${id} was kept, because a run of it has not ended\n`)
    if (interrupt.signal.aborted) throw new CliExit(exitCodes.cancelled)
  },
})
