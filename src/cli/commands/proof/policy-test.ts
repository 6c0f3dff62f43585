/** Implements `policy test`: it compares a table of expectations with what the gate and the operator's rules decide. Runs nothing. */

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { readToml } from '../../../config/text/toml.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { explainedGate } from '../../../host/toolset/policy-in-force.ts'
import { builtInTools } from '../../../host/toolset/tool-selection.ts'
import { hasCode } from '../../../kit/errors.ts'
import { isJsonObject, isObject, type JsonObject, parseJson } from '../../../kit/json.ts'
import { count, didYouMean, visible } from '../../../kit/text.ts'
import type { CommandMode } from '../../../security/autonomy.ts'
import { type ExplainOptions, type Explanation, type LevelName, levelNames } from '../../../security/explain.ts'
import { command } from '../../args/command.ts'
import { approveFlag, autonomyFlag, jsonFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, exitCodes, usageError } from '../../exit.ts'

type Result = {
  readonly what: string
  readonly level: LevelName
  readonly got: Pick<Explanation, 'verdict' | 'rule' | 'reason'>
  readonly wrong: readonly string[]
}

export const test = command({
  flags: { ...jsonFlag, ...autonomyFlag, ...approveFlag, ...workspaceFlag },
  args: { file: { type: 'text', about: 'A TOML or JSON file of expectations; docs/policy-test.toml is one' } },
  examples: [
    ['policy.toml', 'each expectation that does not hold, with what the gate says instead'],
    ['--json policy.toml', 'for scripts: one object a line'],
  ],
  exits: [[1, 'an expectation does not hold']],
  async run(context, { json = false, ...levels }, { file }) {
    const setup = loadSetup(context, levels)
    const table = readPolicyTable(textOf(resolve(context.cwd, file), file), file)
    if (!table.ok) throw new CliExit(exitCodes.usage, `error: ${table.problems.map(visible).join('\n  ')}`)
    const options = await explainedGate(setup, { tools: builtInTools, commands: table.mode })
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
})

function textOf(path: string, given: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const why = hasCode(error, 'ENOENT') ? 'the file does not exist' : String(error)
    throw usageError(`${visible(given)}: ${visible(why)}`)
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

/** `rule` and `question` are optional: the rule by name, and words that the question or reason must contain. */
type Expectation = {
  readonly command?: string
  readonly tool?: string
  readonly args: JsonObject
  readonly level?: LevelName
  readonly verdict: string
  readonly rule?: string
  readonly question?: string
}

type PolicyTable =
  | { readonly ok: true; readonly expectations: readonly Expectation[]; readonly mode?: CommandMode }
  | { readonly ok: false; readonly problems: readonly string[] }

const modes: { readonly [name: string]: CommandMode } = {
  unconfined: { confined: false, transaction: false },
  confined: { confined: true, transaction: false },
  transaction: { confined: true, transaction: true },
}
const verdicts = ['allow', 'ask', 'deny']
const keys = ['command', 'tool', 'args', 'level', 'verdict', 'rule', 'question']

/** Reads a table of expectations for `policy test`: calls, and what the gate and the operator's rules should say of them. */
function readPolicyTable(text: string, file: string): PolicyTable {
  const data = file.endsWith('.json') ? jsonOf(text) : tomlOf(text)
  if (typeof data === 'string') return { ok: false, problems: [`${file}: ${data}`] }
  const { expect: rows, commands, ...others } = data
  const problems = Object.keys(others).map((key) => `${file}: unknown key "${key}"${didYouMean(key, ['expect', 'commands'])}`)
  const mode = typeof commands === 'string' && Object.hasOwn(modes, commands) ? modes[commands] : undefined
  if (commands !== undefined && mode === undefined)
    problems.push(`${file}: commands: ${JSON.stringify(commands)} is not one of ${Object.keys(modes).join(', ')}`)
  if (!Array.isArray(rows) || rows.length === 0) problems.push(`${file}: no [[expect]] in it; see docs/policy-test.toml for an example`)
  const read = (Array.isArray(rows) ? rows : []).map((row, at) => readRow(row, `${file}: expectation ${at + 1}`))
  problems.push(...read.flatMap((one) => (typeof one === 'string' ? [one] : [])))
  if (problems.length > 0) return { ok: false, problems }
  const expectations = read.filter((one) => typeof one !== 'string')
  return { ok: true, expectations, mode }
}

function jsonOf(text: string): JsonTable | string {
  const value = parseJson(text)
  return isObject(value) ? value : 'no JSON object'
}

type JsonTable = { readonly [key: string]: unknown }

function tomlOf(text: string): JsonTable | string {
  const { data, problems } = readToml(text)
  return problems.length === 0 ? data : problems.map(({ line, column, message }) => `${line}:${column}: ${message}`).join('; ')
}

function readRow(row: unknown, where: string): Expectation | string {
  if (!isObject(row)) return `${where} is not a table`
  const odd = Object.keys(row).find((key) => !keys.includes(key))
  if (odd !== undefined) return `${where}: unknown key "${odd}"${didYouMean(odd, keys)}`
  const { command, tool, args, level, verdict, rule, question } = row
  if ((typeof command === 'string') === (typeof tool === 'string')) return `${where} needs either command or tool, as text`
  if (args !== undefined && (!isJsonObject(args) || typeof tool !== 'string')) return `${where}: args is a table, and belongs to a tool`
  const name = levelNames.find((one) => one === level)
  if (level !== undefined && name === undefined)
    return `${where}: level: ${JSON.stringify(level)} is not one of ${levelNames.join(', ')}${didYouMean(String(level), levelNames)}`
  if (typeof verdict !== 'string' || !verdicts.includes(verdict))
    return `${where}: verdict: ${JSON.stringify(verdict) ?? 'nothing'} is not one of ${verdicts.join(', ')}`
  if (![rule, question].every((one) => one === undefined || typeof one === 'string')) return `${where}: rule and question are texts`
  const optional = (value: unknown) => (typeof value === 'string' ? value : undefined)
  return {
    ...{ command: optional(command), tool: optional(tool), rule: optional(rule), question: optional(question) },
    ...{ args: isJsonObject(args) ? args : {}, level: name, verdict },
  }
}
