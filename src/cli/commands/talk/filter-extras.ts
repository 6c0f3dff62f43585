/** Reads the flags of the filter that a plain question does not have: attachments, templates, options of the model, the form of the answer. */

import { readFileSync } from 'node:fs'
import { type AnswerForm, createAnswerForm, readSchema, schemaInstruction } from '../../../channels/filter/answer-form.ts'
import { systemTextOf } from '../../../channels/filter/system-text.ts'
import { tellOnStderr } from '../../../channels/terminal/audience.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { textOf } from '../../../channels/terminal/input-stream.ts'
import { stdinKind } from '../../../channels/terminal/tty.ts'
import { type ProviderConfig, reachableProviders } from '../../../config/config.ts'
import { rowsOfKind } from '../../../config/table.ts'
import { check } from '../../../config/text/check.ts'
import { bytesOf } from '../../../host/run/pictures.ts'
import { pictureKind } from '../../../kit/content/picture-kind.ts'
import { attempt } from '../../../kit/errors.ts'
import { camel, type Row } from '../../../kit/settings.ts'
import { didYouMean, quote } from '../../../kit/text.ts'
import type { FilterFlags } from '../../args/filter-flags.ts'
import { formatOf } from '../../args/turn-flags.ts'
import { usageError } from '../../exit.ts'

export type Extras = {
  /** The flags, completed by the template. */
  readonly flags: FilterFlags
  readonly form: AnswerForm | undefined
  /** Tells whether the question may be empty. */
  readonly asksByItself: boolean
  /** Returns the question with the attached texts, and the system prompt of the template. */
  filled(input: string, texts: readonly string[]): { readonly prompt: string; readonly system?: string | undefined }
  /** Reads the attachments, with the rules of file_read. @throws CliExit and FailureError `usage` */
  attachments(setup: CliSetup): Attachments
  /** Returns the system prompt with what the answer must look like. */
  instructed(system: string): string
  /** Returns the setup with the options of the model. */
  configured(setup: CliSetup): CliSetup
}

type Attachments = { readonly texts: readonly string[]; readonly pictures: readonly Uint8Array[] }

/** @throws CliExit 2 and FailureError `usage` before anything is asked */
export async function readExtras(context: CliContext, given: FilterFlags): Promise<Extras> {
  const { attachment = [], param = [], print } = given
  if (given.template === undefined && param.length > 0) throw usageError('--param fills a variable of a template; name one with -t')
  if (given.template !== undefined && /^\w+$/.test(print ?? ''))
    throw usageError(`-p is the question here; a variable of the template: --param ${print}=VALUE`)
  const templates = given.template === undefined ? undefined : await import('../../../channels/filter/template.ts')
  const template = templates?.readTemplate(templates.findTemplate(given.template ?? '', context)) ?? {}
  const { model, schema, extract, extract_last: extractLast, options = {} } = template
  const flags: FilterFlags = { ...defined({ model, schema, extract, extractLast }), ...given }
  const params = pairsOf('--param', param)
  const shape = schemaOf(context, flags)
  const paths = attachment.filter(isFile)
  return {
    flags,
    form: formFor(context, flags, shape),
    asksByItself: template.prompt !== undefined || paths.length > 0,
    attachments: (setup) => attachmentsOf(setup, paths),
    filled(input, texts) {
      const { prompt, system } = templates?.fillTemplate(template, input, params) ?? { prompt: input }
      return { prompt: [prompt, ...texts].filter((text) => text !== '').join('\n\n'), system }
    },
    instructed: (system) => (shape ? [system.trimEnd(), schemaInstruction(shape)].filter((text) => text !== '').join('\n\n') : system),
    configured: (setup) => withModelOptions(setup, { ...options, ...pairsOf('-o', given.option ?? []) }),
  }
}

function defined<Values extends object>(values: Values): Partial<Values> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<Values>
}

function pairsOf(flag: string, pairs: readonly string[]): { readonly [name: string]: string } {
  const read = pairs.map((pair) => {
    const at = pair.indexOf('=')
    if (at < 1) throw usageError(`${flag} ${quote(pair)}: write NAME=VALUE in one word, such as ${flag} ${at < 0 ? pair : 'name'}=…`)
    return [pair.slice(0, at), pair.slice(at + 1)] as const
  })
  return Object.fromEntries(read)
}

function schemaOf({ cwd, env }: CliContext, { schema, schemaMulti }: FilterFlags) {
  if (schema !== undefined && schemaMulti !== undefined) throw usageError('--schema and --schema-multi are two schemas; pass one')
  const given = schema ?? schemaMulti
  if (given === undefined) return undefined
  const one = readSchema(given.trim().startsWith('{') ? given : systemTextOf(given, { cwd, home: env.HOME ?? '', flag: '--schema' }).text)
  return schemaMulti === undefined
    ? one
    : { type: 'object', properties: { items: { type: 'array', items: one } }, required: ['items'], additionalProperties: false }
}

function formFor(context: CliContext, flags: FilterFlags, schema: ReturnType<typeof schemaOf>): AnswerForm | undefined {
  const { extract, extractLast, noStream, usage = false } = flags
  if (schema && (extract || extractLast)) throw usageError('--schema prints JSON and -x a code block; pass one')
  if (schema && formatOf(flags) === 'stream-json') throw usageError('--schema has no stream; use --json')
  if (!(schema || extract || extractLast || noStream || usage)) return undefined
  const isWhole = schema !== undefined || extract || extractLast || noStream
  const block = extractLast ? 'last' : extract ? 'first' : undefined
  return createAnswerForm({ schema, block, saysUsage: usage, streams: !isWhole, note: tellOnStderr(context) })
}

/** Stdin is read with the question. */
function isFile(path: string): boolean {
  if (path === '-' && stdinKind() !== 'data') throw usageError('-a - is stdin, and nothing is piped in')
  if (/^[a-z][a-z+.-]+:\/\//i.test(path))
    throw usageError(`-a ${path}: addresses are not fetched; fetch it first: curl ADDRESS | braidclaw -a -`)
  return path !== '-'
}

function attachmentsOf(setup: CliSetup, paths: readonly string[]): Attachments {
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

/** Names of other programs for the settings of a provider. */
const otherNames: { readonly [name: string]: string } = { max_tokens: 'max_output_tokens', timeout: 'total_timeout_s' }
/** These say who is asked, and what it costs. */
const fixed = /^(model|base_url|api_key_env|plugin|fixture|dir|routes|providers|default|price_.*)$/

/** Sets the options in every provider that may answer. @throws CliExit 2 for an option that none of them has, and for a wrong value */
function withModelOptions(setup: CliSetup, options: { readonly [name: string]: string }): CliSetup {
  const { config, context } = setup
  const asked = reachableProviders(config, config.defaultProvider)
  const models = { ...config.providers.models }
  for (const [typed, text] of Object.entries(options)) {
    const name = Object.hasOwn(otherNames, typed) ? (otherNames[typed] ?? typed) : typed
    const able = asked.filter((provider) => Object.hasOwn(optionsOf(provider), name))
    if (able.length === 0) throw noOption(typed, asked)
    for (const provider of able) {
      const row = optionsOf(provider)[name]
      const raw = row && (row.type === 'text' || row.type === 'choice') ? text : (attempt(() => JSON.parse(text)) ?? text)
      const checked = row && check(row, raw, { base: context.cwd, env: context.env, typed: true, userHome: '', home: context.home })
      if (checked?.value === undefined) throw usageError(`-o ${typed}: ${checked?.wrong.join('; ')}`)
      models[provider.name] = { ...(models[provider.name] ?? provider), [camel(name)]: checked.value }
    }
  }
  return { ...setup, config: { ...config, providers: { ...config.providers, models } } }
}

function optionsOf({ kind }: ProviderConfig): { readonly [name: string]: Row } {
  return Object.fromEntries(Object.entries(rowsOfKind(kind) ?? {}).filter(([name]) => !fixed.test(name)))
}

function noOption(typed: string, asked: readonly ProviderConfig[]) {
  const names = [...new Set(asked.flatMap((provider) => Object.keys(optionsOf(provider))))]
  const of = asked.map(({ name }) => name).join(', ')
  const there = names.length === 0 ? '; it has none' : `; there are: ${names.join(', ')}`
  return usageError(
    `-o ${typed}: the provider ${of} has no such option${didYouMean(typed, [...names, ...Object.keys(otherNames)]) || there}`,
  )
}
