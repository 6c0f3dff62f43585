/** Implements `policy test`: it compares a table of expectations with what the gate and the operator's rules decide. Runs nothing. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadSetup } from '../../../host/setup/setup.ts'
import { explainedGate } from '../../../host/toolset/policy/explained-gate.ts'
import { builtInTools } from '../../../host/toolset/tool-selection.ts'
import { count } from '../../../kit/count.ts'
import { visible } from '../../../kit/text.ts'
import type { ExplainOptions, Explanation, LevelName } from '../../../security/explain.ts'
import type { Arguments, Command, Flags } from '../../args/command.ts'
import { approveFlag, autonomyFlag, jsonFlag, workspaceFlag } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { type Expectation, readPolicyTable } from './policy-table.ts'

const flags = { ...jsonFlag, ...autonomyFlag, ...approveFlag, ...workspaceFlag } as const satisfies Flags
const args = {
  file: { type: 'text', about: 'A TOML or JSON file of expectations; docs/policy-test.toml is one' },
} as const satisfies Arguments

type Result = {
  readonly what: string
  readonly level: LevelName
  readonly got: Pick<Explanation, 'verdict' | 'rule' | 'reason'>
  readonly wrong: readonly string[]
}

export const test = {
  flags,
  args,
  examples: [
    ['policy.toml', 'each expectation that does not hold, with what the gate says instead'],
    ['--json policy.toml', 'for scripts: one object a line'],
  ],
  exits: [[1, 'an expectation does not hold']],
  async run(context, { json = false, autonomy, approveAllMedium, workspace }, { file }) {
    const setup = loadSetup(context, { autonomy, approveAllMedium, workspace })
    const table = readPolicyTable(textOf(join(context.cwd, file), file, file.startsWith('/')), file)
    if (!table.ok) throw new CliExit(exitCodes.usage, `error: ${table.problems.map(visible).join('\n  ')}`)
    const options = await explainedGate(setup, { tools: builtInTools, ...(table.mode ? { commands: table.mode } : {}) })
    const results: Result[] = []
    for (const expectation of table.expectations) results.push(setup.redactor.value(await check(options, expectation)))
    const { stdout } = context.process
    for (const [at, result] of results.entries()) {
      if (json) stdout.write(`${JSON.stringify({ number: at + 1, ok: result.wrong.length === 0, ...result })}\n`)
      else if (result.wrong.length > 0) stdout.write(tell(result, at + 1))
    }
    const failed = results.filter(({ wrong }) => wrong.length > 0).length
    if (!json) stdout.write(`${results.length - failed} of ${count(results.length, 'expectation')} hold\n`)
    if (failed > 0) throw new CliExit(exitCodes.error, json ? '' : `error: ${count(failed, 'expectation')} of ${file} do not hold`)
  },
} as const satisfies Command<typeof flags, typeof args>

function textOf(path: string, given: string, isAbsolute: boolean): string {
  try {
    return readFileSync(isAbsolute ? given : path, 'utf8')
  } catch (error) {
    const why = error instanceof Error && 'code' in error && error.code === 'ENOENT' ? 'there is no such file' : String(error)
    throw new CliExit(exitCodes.usage, `error: ${visible(given)}: ${visible(why)}`)
  }
}

async function check(options: ExplainOptions, expected: Expectation): Promise<Result> {
  const { explainCall, explainCommand } = await import('../../../security/explain.ts')
  const said =
    expected.command === undefined
      ? await explainCall(options, { name: expected.tool ?? '', input: expected.args })
      : await explainCommand(options, expected.command)
  const level = expected.level ?? said.level
  const got = said.levels[level]
  const asked = `${got.reason} ${said.summary}`
  const wrong = [
    ...(got.verdict === expected.verdict ? [] : [`expected ${expected.verdict}, got ${got.verdict}`]),
    ...(expected.rule === undefined || got.rule === expected.rule ? [] : [`expected the rule ${expected.rule}, got ${got.rule}`]),
    ...(expected.question === undefined || asked.includes(expected.question) ? [] : [`the question does not say "${expected.question}"`]),
  ]
  const what = expected.command ?? `${expected.tool} ${JSON.stringify(expected.args)}`
  return { what, level, got: { verdict: got.verdict, rule: got.rule, reason: got.reason }, wrong }
}

function tell({ what, level, got, wrong }: Result, number: number): string {
  return `✗ ${number}. ${visible(what)} (${level}): ${visible(wrong.join('; '))}\n    ${got.rule}: ${visible(got.reason)}\n`
}
