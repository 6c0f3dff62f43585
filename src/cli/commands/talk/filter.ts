/** Implements the filter: text in, one answer out. `braidclaw "question"`, `… | braidclaw`. */

import { createQuestionChannel, runChannel } from '../../../channels/filter/channel.ts'
import { systemTextOf } from '../../../channels/filter/system-text.ts'
import { assertCommandLine } from '../../../channels/list.ts'
import { terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { renderWhole } from '../../../channels/terminal/render.ts'
import type { Conversation, Host } from '../../../host/api.ts'
import { filterOptions } from '../../../host/run/filter-options.ts'
import { type AgentProfile, agentProfileOf, runAgent, sessionOf, soulOf } from '../../../host/setup/agent-profile.ts'
import { withFoundModels } from '../../../host/setup/provider-pool.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { sayWhere } from '../../../host/setup/workspace-folder.ts'
import { command, spelled } from '../../args/command.ts'
import { type FilterFlags, filterFlags, hasExtras } from '../../args/filter-flags.ts'
import { pasteable } from '../../args/resolve-command.ts'
import { acceptance, conversationOf, formatOf, imagesOf, messageOf } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../exit.ts'
import { noteOffline } from '../../offline-notice.ts'
import type { Extras } from './filter-extras.ts'

/** Joins several words into one question. @throws CliExit with the exit code of the turn, unless it is 0 */
export const filter = command({
  flags: filterFlags,
  args: { message: { type: 'text', many: true, optional: true, about: 'The question; text on stdin is appended' } },
  examples: [
    ['"What is 2+2?"', 'a question'],
    ['-s "Which service is failing?" < error.log', 'with a system prompt, over text from stdin'],
    ['-c "And then?"', 'continue the last conversation'],
    ['--schema "name, age int" "Invent a dog"', 'JSON, and nothing else on stdout (docs/filter.md)'],
    ['--tools default "Which file here is the largest?"', 'with tools, through the gate'],
  ],
  details: () =>
    'Answers one question on stdout, and nothing else there. `braidclaw "question"` is the same as `braidclaw filter "question"`; `--` before the question keeps a word from being taken for a command. No tool is offered to the model without --tools. Each call is a conversation of its own; -c continues the last one of the agent.',
  exits: [3, 4, 5, 6, 7, 8, 9, 10, 130],
  async run(context, given, { message: typed }) {
    const extras = hasExtras(given) ? await (await loadExtras()).readExtras(context, given) : undefined
    const flags = extras?.flags ?? given
    const words = given.print === undefined ? typed : [given.print, ...typed]
    assertModelName(flags, words)
    // The program llm has its own model names.
    const isOurs = flags.toolBackend !== 'llm'
    const loaded = loadSetup(context, isOurs ? flags : { ...flags, model: undefined })
    const found = isOurs ? await withFoundModels(loaded) : loaded
    const setup = extras?.configured(found) ?? found
    assertCommandLine(setup)
    const agentProfile = agentProfileOf(setup)
    const own = await systemOf({ setup, flags, agentProfile })
    const { texts, pictures } = extras?.attachments(setup) ?? { texts: [], pictures: [] }
    const images = [...(flags.image ?? []), ...pictures]
    const input = await promptOf(context, flags, { words, extras, images })
    const { prompt, system = own } = extras?.filled(input, texts) ?? { prompt: input }
    const said = extras?.instructed(flags.system === undefined ? system : own) ?? system
    const code = await answer({ setup, flags, agentProfile, prompt, images, system: said, form: extras?.form })
    const failure = extras?.form?.failure()
    if (failure !== undefined) throw commandError(failure)
    if (code !== 0) throw new CliExit(code)
  },
})

const loadExtras = () => import('./filter-extras.ts')

/** `agent` takes its message after -m, but the filter takes the model there, whose name has no spaces. */
function assertModelName({ model }: FilterFlags, words: readonly string[]): void {
  if (model === undefined || !/\s/.test(model)) return
  const question = pasteable([[model, ...words].join(' ')])
  throw usageError(`-m names the model here, and no model is called ${JSON.stringify(model)}. To ask that: braidclaw ${question}`)
}

/** A picture on stdin is added to `images`. */
type Input = { readonly words: readonly string[]; readonly extras: Extras | undefined; readonly images: (string | Uint8Array)[] }

async function promptOf(context: CliContext, { model }: FilterFlags, { words, extras, images }: Input): Promise<string> {
  const hint = model === undefined ? '' : `; -m names the model here (${model})`
  const advice = `give a message, or pipe text in${hint}`
  const binary = async (bytes: Uint8Array) => {
    images.push((await loadExtras()).pictureIn('stdin', bytes))
    return ''
  }
  const message = words.length > 0 ? words.join(' ') : undefined
  const prompt = await messageOf({ message, advice, isOptional: extras?.asksByItself, binary }, context)
  if (prompt !== undefined) return prompt
  throw usageError(`nothing to answer: ${advice}`)
}

type Asking = { readonly setup: CliSetup; readonly flags: FilterFlags; readonly agentProfile: AgentProfile }

/** Returns the text of -s, else the soul. Empty when there is neither: the model then gets only the question. */
async function systemOf({ setup, flags: { system }, agentProfile }: Asking): Promise<string> {
  if (system === undefined) return soulOf(setup, agentProfile)
  const { text, file } = systemTextOf(system, { cwd: setup.context.cwd, home: setup.context.env.HOME ?? '' })
  setup.log('info', 'system prompt', { from: file ?? 'text' })
  return text
}

type AnswerOptions = Asking &
  Readonly<Record<'prompt' | 'system', string>> & {
    readonly form: Extras['form'] | undefined
    readonly images: readonly (string | Uint8Array)[]
  }

async function answer(question: AnswerOptions): Promise<number> {
  const { setup, flags, agentProfile, prompt, form, images } = question
  noteOffline(setup)
  if (flags.tools !== undefined) sayWhere(setup)
  if (flags.tools !== undefined || flags.toolBackend !== undefined) {
    const code = await (await import('../../../channels/filter/tool-backend.ts')).runExternalLoop({
      ...question,
      ...{ backend: flags.toolBackend, model: flags.model, sandbox: flags.sandbox, tools: flags.tools },
      odd: images.length > 0 ? '--image' : oddWithBackend(flags),
    })
    if (code !== undefined) return code
  }
  const request = await filterOptions({ setup, system: question.system, ...acceptance(flags), tools: flags.tools })
  const which = conversationOf(flags, () => sessionOf(agentProfile))
  const ask = flags.tools === undefined ? undefined : terminalPrompt(setup.context)
  const format = formatOf(flags)
  const channel = createQuestionChannel({
    setup,
    which,
    options: { channel: 'filter', ...request, agent: runAgent(agentProfile) },
    ...{ format, prompt, pictures: await imagesOf(setup, images), ask },
    renderer: form?.renderer ?? (format === 'text' ? renderWhole : undefined),
    again: form?.again,
    begun: (conversation, host) => noteNewSession({ setup, flags, agentProfile }, conversation, host),
  })
  await runChannel(setup, channel)
  return channel.exitCode() ?? exitCodes.error
}

/** -c without an earlier conversation begins a new one, so that a script can use -c from its first call on. */
function noteNewSession({ setup, flags, agentProfile }: Asking, { id, workspace }: Conversation, host: Host): void {
  if (!flags.continue) return
  const wanted = sessionOf(agentProfile)
  if (wanted.kind !== 'session' || wanted.id === id) return
  const other = agentProfile.id === 'default' ? host.latestElsewhere(workspace) : undefined
  const why = other ? `${other.says} (to continue that one: --resume ${other.id})` : 'nothing to continue'
  setup.context.process.stderr.write(`note: ${why}; a new conversation begins\n`)
}

/** Returns the flag that an external loop does not support. */
function oddWithBackend(flags: FilterFlags): string | undefined {
  if (flags.continue) return '-c'
  if (flags.resume !== undefined) return '--resume'
  const form = (['schema', 'extract', 'extractLast', 'option', 'effort', 'usage'] as const).find((name) => flags[name] !== undefined)
  if (form !== undefined) return spelled(form)
  return flags.json || (flags.outputFormat ?? 'text') !== 'text' ? '--json' : undefined
}
