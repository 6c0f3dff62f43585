/** The keys `outputs`, `budget` and `triggers` of a procedure, through the real executable. Denials come first. */

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { alone, everyTool, home, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'
import { writeSop } from './daily-check.ts'

const agent = (id: string, more = '') => `[[steps]]\nid = "${id}"\nkind = "agent"\nprompt = "Go."\n${more}\n`
const write = '[[steps]]\nid = "w"\nkind = "tool"\ntool = "file_write"\nargs = { path = "w.txt", content = "x" }\n'
const full = ['--autonomy', 'full']
const says = (text: string) => ({ text, usage: { input_tokens: 18_000, output_tokens: 1_000 } })

test('a budget that is spent ends the run with exit 6 and the reason, even where a failure may not end it, and stays spent', async () => {
  using at = home('', '')
  const { env } = scripted(at, [says('one'), says('two'), says('three')])
  const steps = `${agent('a')}${agent('b', 'on_failure = "continue"\nretry = 3')}${write}`
  writeSop(at, 'work', `name = "work"\n[budget]\ntokens = 20000\n${steps}`)
  const { code, stderr } = await at.run(['sop', 'run', 'work', ...full], { env, through: alone })
  expect(stderr).toContain('of budget.tokens (20000 tokens)')
  expect([code, existsSync(join(at.workspace, 'w.txt'))]).toEqual([6, false])
  const run = JSON.parse((await at.run(['sop', 'status', 'last', '--json'])).stdout)
  expect([run.state, run.code, run.steps.map(({ step, attempt }: { step: string; attempt: number }) => `${step} ${attempt}`)]).toEqual([
    'failed',
    'budget',
    ['a 1', 'b 1'],
  ])
})

test('what a call had reserved when its process was killed counts in full after the restart, so that the budget is spent', async () => {
  using at = home('', '')
  writeSop(at, 'work', `name = "work"\n[budget]\ntokens = 18000\n${agent('a')}`)
  const { env } = scripted(at, [{ text: 'late', delay_ms: 60_000 }])
  const running = at.start(['sop', 'run', 'work', ...full], { env, timeoutMs: 30_000 })
  const reserved = () => {
    using db = new Database(join(at.home, '.braidclaw/memory.sqlite'), { readonly: true })
    const sum = "SELECT coalesce(sum(tokens), 0) AS n FROM budget_charges WHERE scope LIKE 'procedure:%'"
    return db.query<{ n: number }, []>(sum).get()?.n ?? 0
  }
  await running.says('a: running')
  await until(() => reserved() > 0)
  process.kill(running.pid, 'SIGKILL')
  await running.result
  const held = reserved()
  const { code, stderr } = await at.run(['sop', 'resume', 'last', ...full], { env: scripted(at, [says('again')]).env, through: alone })
  expect([held > 10_000, reserved(), code]).toEqual([true, held, 6])
  expect(stderr).toContain('of budget.tokens (18000 tokens)')
})

test('a budget of money holds, and the outputs of a run are its results', async () => {
  using at = home('', '')
  at.config(everyTool.replace('kind = "mock"\n', 'kind = "mock"\nprice_input = 3\nprice_output = 15\n'))
  const outputs = '[outputs]\nreport = "Done: {{ steps.a.output }} in {{ inputs.city }}"\n'
  const work = (usd: string) => `name = "work"\n[budget]\nusd = ${usd}\n[inputs.city]\ndefault = "Bern"\n${outputs}${agent('a')}`
  const run = (text: string) => at.run(['sop', 'run', 'work', ...full], { env: scripted(at, [says(text)]).env, through: alone })
  writeSop(at, 'work', work('0.0001'))
  const poor = await run('one')
  expect([poor.code, poor.stderr.includes('of budget.usd ($0.0001)')]).toEqual([6, true])
  writeSop(at, 'work', work('0.9'))
  const { code, stdout } = await run('{{ inputs.city }}')
  expect([code, stdout.includes('\nreport:\nDone: {{ inputs.city }} in Bern\n')]).toEqual([0, true])
  const [last] = JSON.parse((await at.run(['sop', 'status', '--json'])).stdout)
  expect(last.outputs).toEqual({ report: 'Done: {{ inputs.city }} in Bern' })
})
