/** pi, codex and claude themselves: they answer through the pass-through, find skills by a tool, and end with their lease. */

import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { claudeRunner, codexRunner, piRunner } from '../../../src/control/runners/foreign-runners.ts'
import type { RunnerSupport } from '../../../src/control/runners/runner.ts'
import { openLibrary } from '../../../src/control/skills/open-library.ts'
import { executable } from '../../support/cli.ts'
import { startMetered } from '../llm/metered-server.ts'
import { type ForeignRun, hasForeign, longestMs, runForeign } from './foreign-run.ts'
import { createVendor } from './looping-vendor.ts'

const folder = mkdtempSync(join(tmpdir(), 'braidclaw-foreign-'))
afterAll(() => rmSync(folder, { recursive: true }))
const running: { stop(): void }[] = []
afterEach(() => {
  for (const one of running.splice(0)) one.stop()
})

const file = join(folder, 'library.yaml')
writeFileSync(
  file,
  `skills:
  - name: jail-status
    summary: Check whether a jail runs
    content: The secret word of this text is rhododendron.
`,
)
const library = openLibrary(file)
if (!library.ok) throw new Error(library.message)
const skills = library.forAgent({ id: 'sysadmin', role: 'sysadmin' })
const extension = skills.piExtension()
const support: RunnerSupport = {
  ...(extension === undefined ? {} : { piExtension: extension }),
  mcpServer: { command: executable, args: ['control', 'skills-server', '--library', file, '--agent', 'sysadmin'] },
}

const runners = { pi: piRunner, claude: claudeRunner, codex: codexRunner } as const
const [model, prompt] = ['model-1', 'Is the db jail running?']

function started(vendor: Parameters<typeof createVendor>[0], limit: number | null = null) {
  const simulated = createVendor(vendor)
  const metered = startMetered(simulated.answer, { limit })
  running.push(metered)
  const run = (name: keyof typeof runners): Promise<ForeignRun> =>
    runForeign(runners[name]({ support }), { apiUrl: metered.origin, prompt, skillIndex: skills.index(), model })
  return { ...metered, paid: simulated.paid, run }
}

function resultOf({ events, stdout, stderr }: ForeignRun) {
  const result = events.findLast((event) => event.type === 'result')
  if (!result) throw new Error(`no result: ${stdout.slice(-2_000)} ${stderr.slice(-2_000)}`)
  return result
}

describe.each(['pi', 'claude', 'codex'] as const)('%s', (name) => {
  const there = hasForeign(name)

  test.if(there)(
    'ends when its run loses the lease while it works',
    async () => {
      const { run, plane, paid } = started({
        tool: 'skills_search',
        input: { query: 'jail' },
        forever: true,
        after: 2,
        whenSo: () => takeAway(),
      })
      const takeAway = () => Object.assign(plane.state, { token: 'cpr_other' })
      const run1 = await run(name)
      expect(resultOf(run1).ok).toBe(false)
      expect(paid.length).toBeLessThanOrEqual(3)
      expect(run1.took).toBeLessThan(longestMs / 2)
    },
    longestMs,
  )

  test.if(there)(
    'has the index in its prompt, reads a skill by skills_search, answers, and every token is counted',
    async () => {
      const { run, plane, paid } = started({ tool: 'skills_search', input: { query: 'jail' } })
      const run1 = await run(name)
      expect(resultOf(run1)).toMatchObject({ ok: true, output: 'All done.' })
      expect(paid[0]?.text).toContain('- jail-status: Check whether a jail runs')
      expect(paid[0]?.text).not.toContain('rhododendron')
      expect(paid.at(-1)?.text).toContain('rhododendron')
      expect(plane.settled).toEqual(paid.map(() => 120))
    },
    longestMs,
  )
})
