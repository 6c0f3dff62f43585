/** Reads the flags of the filter that a plain question does not have: attachments, templates, options of the model, the form of the answer. */

import { readFileSync } from 'node:fs'
import { createAnswerForm, readSchema, schemaInstruction } from '../../../channels/filter/answer-form.ts'
import { systemTextOf } from '../../../channels/filter/system-text.ts'
import { tellOnStderr } from '../../../channels/terminal/audience.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { textOf } from '../../../channels/terminal/input-stream.ts'
import { stdinKind } from '../../../channels/terminal/tty.ts'
import { reachableProviders } from '../../../config/config.ts'
import { rowsOfKind } from '../../../config/table.ts'
import { check } from '../../../config/text/check.ts'
import { bytesOf } from '../../../host/run/pictures.ts'
import { pictureKind } from '../../../kit/content/picture-kind.ts'
import { parseJson } from '../../../kit/json.ts'
import { camel } from '../../../kit/settings.ts'
import { didYouMean, quote } from '../../../kit/text.ts'
import type { FilterFlags } from '../../args/filter-flags.ts'
import { formatOf } from '../../args/turn-flags.ts'
import { usageError } from '../../exit.ts'

export type Extras = Awaited<ReturnType<typeof readExtras>>

/** @throws CliExit 2 and FailureError `usage` before anything is asked */
export async function readExtras(context: CliContext, given: FilterFlags) {
  const { attachment = [], param = [], print = '' } = given
  if (given.template === undefined && param.length > 0) throw usageError('--param fills a variable of a template; name one with -t')
  if (given.template !== undefined && /^\w+$/.test(print))
    throw usageError(`-p is the question here; a variable of the template: --param ${print}=VALUE`)
  const templates = given.template === undefined ? undefined : await import('../../../channels/filter/template.ts')
  const template = (await templates?.readTemplate(templates.findTemplate(given.template ?? '', context))) ?? {}
  const { prompt: own, system: _, defaults: __, options = {}, extract_last: extractLast, ...rest } = template
  const flags: FilterFlags = { ...rest, ...(extractLast && { extractLast }), ...given }
  const params = pairsOf('--param', param)
  const place = { cwd: context.cwd, home: context.env.HOME ?? '', flag: '--schema' }
  const schema = flags.schema === undefined ? undefined : readSchema(systemTextOf(flags.schema, place).text)
  const { noStream, usage: saysUsage = false } = flags
  const block = flags.extractLast ? 'last' : flags.extract ? 'first' : undefined
  if (schema && block) throw usageError('--schema prints JSON and -x a code block; pass one')
  if (schema && formatOf(flags) === 'stream-json') throw usageError('--schema has no stream; use --json')
  const paths = attachment.filter(isFile)
  return {
    /** The flags, completed by the template. */
    flags,
    form: createAnswerForm({ schema, block, saysUsage, streams: !(schema || block || noStream), note: tellOnStderr(context) }),
    /** Tells whether the question may be empty. */
    asksByItself: own !== undefined || paths.length > 0,
    attachments: (setup: CliSetup) => attachmentsOf(setup, paths),
    /** Returns the question with the attached texts, and the system prompt of the template. */
    filled(input: string, texts: readonly string[]): { readonly prompt: string; readonly system?: string | undefined } {
      const { prompt, system } = templates?.fillTemplate(template, input, params) ?? { prompt: input }
      return { prompt: [prompt, ...texts].filter((text) => text !== '').join('\n\n'), system }
    },
    /** Adds to the system prompt what the answer must look like. */
    instructed: (system: string) => (schema ? `${system.trimEnd()}\n\n${schemaInstruction(schema)}`.trimStart() : system),
    configured: (setup: CliSetup) => withModelOptions(setup, { ...options, ...pairsOf('-o', given.option ?? []) }),
  }
}

function pairsOf(flag: string, pairs: readonly string[]): { readonly [name: string]: string } {
  const odd = pairs.find((pair) => pair.indexOf('=') < 1)
  if (odd !== undefined) throw usageError(`${flag} ${quote(odd)}: write NAME=VALUE in one word, such as ${flag} ${odd}=…`)
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]))
}

/** Stdin is read with the question. */
function isFile(path: string): boolean {
  if (path === '-' && stdinKind() !== 'data') throw usageError('-a - is stdin, and nothing is piped in')
  if (/^[a-z][a-z+.-]+:\/\//i.test(path))
    throw usageError(`-a ${path}: addresses are not fetched; fetch it first: curl ADDRESS | braidclaw -a -`)
  return path !== '-'
}

function attachmentsOf(setup: CliSetup, paths: readonly string[]) {
  const [texts, pictures]: [string[], Uint8Array[]] = [[], []]
  for (const path of paths) {
    // A shell passes a pipe of its own so, and no rule is about it.
    const isPipe = /^\/(?:dev|proc\/self)\/fd\/\d+$/.test(path)
    const bytes = isPipe ? readFileSync(path) : bytesOf(setup, path, '-a')
    const text = textOf(bytes)
    if (text === undefined) pictures.push(pictureIn(`-a ${quote(path)}`, bytes))
    else texts.push(`${path}:\n${text.trimEnd()}`)
  }
  return { texts, pictures }
}

/** Returns the bytes. @throws CliExit 2 when they are neither text nor a picture */
export function pictureIn(name: string, bytes: Uint8Array): Uint8Array {
  if (pictureKind(bytes)) return bytes
  const advice = 'convert it (iconv -f latin1 -t utf-8), or let the agent read the file itself'
  throw usageError(`${name} is not UTF-8 text and no picture, so nothing was sent; ${advice}`)
}

/** The settings of a provider that are options of its model, and what other programs call them. */
const optionNames = 'temperature effort max_output_tokens total_timeout_s idle_timeout_s max_retries context_tokens stream'.split(' ')
const otherNames = new Map(Object.entries({ max_tokens: 'max_output_tokens', reasoning_effort: 'effort', timeout: 'total_timeout_s' }))

/** Sets the options in every provider that may answer. @throws CliExit 2 for an option that none of them has, and for a wrong value */
function withModelOptions(setup: CliSetup, options: { readonly [name: string]: string }): CliSetup {
  const { cwd, env, home } = setup.context
  const { config } = setup
  const asked = reachableProviders(config, config.defaultProvider)
  const models = { ...config.providers.models }
  const where = { base: cwd, env, home, userHome: '', typed: true }
  for (const [typed, text] of Object.entries(options)) {
    const name = otherNames.get(typed) ?? typed
    const able = optionNames.includes(name) ? asked.filter(({ kind }) => rowsOfKind(kind)?.[name]) : []
    if (able.length === 0) {
      const names = optionNames.filter((each) => asked.some(({ kind }) => rowsOfKind(kind)?.[each]))
      const near = didYouMean(typed, [...names, ...otherNames.keys()]) || `; there are: ${names.join(', ') || 'none'}`
      throw usageError(`-o ${typed}: the provider ${config.defaultProvider} has no such option${near}`)
    }
    for (const { name: id, kind } of able) {
      const row = rowsOfKind(kind)?.[name]
      const { value, wrong } = row ? check(row, parseJson(text) ?? text, where) : { wrong: [] }
      if (value === undefined) throw usageError(`-o ${typed}: ${wrong.join('; ')}`)
      Object.assign(models, { [id]: { ...models[id], [camel(name)]: value } })
    }
  }
  return { ...setup, config: { ...config, providers: { ...config.providers, models } } }
}
