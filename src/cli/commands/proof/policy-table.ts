/** Reads a table of expectations for `policy test`: calls, and what the gate and the operator's rules should say of them. */

import { readToml } from '../../../config/text/toml.ts'
import { didYouMean } from '../../../kit/did-you-mean.ts'
import { isObject, type JsonObject } from '../../../kit/json.ts'
import { parseJson } from '../../../kit/wire.ts'
import type { CommandMode } from '../../../security/autonomy.ts'
import { type LevelName, levelNames } from '../../../security/explain.ts'

/** `rule` and `question` are optional: the rule by name, and words that the question or reason must contain. */
export type Expectation = {
  readonly command?: string
  readonly tool?: string
  readonly args: JsonObject
  readonly level?: LevelName
  readonly verdict: string
  readonly rule?: string
  readonly question?: string
}

export type PolicyTable =
  | { readonly ok: true; readonly expectations: readonly Expectation[]; readonly mode?: CommandMode }
  | { readonly ok: false; readonly problems: readonly string[] }

const modes: { readonly [name: string]: CommandMode } = {
  unconfined: { confined: false, transaction: false },
  confined: { confined: true, transaction: false },
  transaction: { confined: true, transaction: true },
}
const verdicts = ['allow', 'ask', 'deny']
const keys = ['command', 'tool', 'args', 'level', 'verdict', 'rule', 'question']

export function readPolicyTable(text: string, file: string): PolicyTable {
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
  return { ok: true, expectations, ...(mode ? { mode } : {}) }
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
  if (!isObject(row)) return `${where} is no table`
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
  return {
    ...(typeof command === 'string' ? { command } : {}),
    ...(typeof tool === 'string' ? { tool } : {}),
    args: isJsonObject(args) ? args : {},
    ...(name ? { level: name } : {}),
    verdict,
    ...(typeof rule === 'string' ? { rule } : {}),
    ...(typeof question === 'string' ? { question } : {}),
  }
}

function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value)
}
