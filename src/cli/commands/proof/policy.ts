/** Implements `policy explain`: it shows the gate's decision about a call without running anything. */

import { channelKinds } from '../../../channels/list.ts'
import type { CliContext, CliSetup } from '../../../channels/terminal/context.ts'
import { channelProfileOf, narrowSetup } from '../../../host/access/channel-profile.ts'
import { withMemory } from '../../../host/open/open-records.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { explainedGate, type PolicyInForce, policyInForce } from '../../../host/toolset/policy-in-force.ts'
import { builtInTools } from '../../../host/toolset/tool-selection.ts'
import { toolsFor } from '../../../host/toolset/tools-option.ts'
import { isJsonObject, type JsonObject } from '../../../kit/json.ts'
import { didYouMean } from '../../../kit/text.ts'
import type { RuleFinding } from '../../../runtime/rules/explain.ts'
import type { CommandMode } from '../../../security/autonomy.ts'
import { quoteText } from '../../../security/command/syntax/quote.ts'
import { type Explanation, explainCall, explainCommand, levelNames } from '../../../security/explain.ts'
import { command } from '../../args/command.ts'
import { approveFlag, autonomyFlag, jsonFlag, toolsFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, exitCodes, usageError } from '../../exit.ts'

export const explain = command({
  flags: {
    tool: { type: 'text', about: 'Explain a call of this tool instead of a command' },
    args: { type: 'text', about: 'Its arguments, a JSON object (with --tool)' },
    threads: { type: 'text', about: 'Judge by the rules of this file instead of yours' },
    channel: { type: 'text', about: 'Judge as for people on this channel of the daemon, such as discord' },
    ...{ ...jsonFlag, ...toolsFlag, ...autonomyFlag, ...approveFlag, ...workspaceFlag },
  },
  args: { command: { type: 'text', many: true, optional: true, about: 'The command, after --' } },
  examples: [
    ['-- git push --force', 'a command'],
    ['--json -- rm -rf /', 'for scripts'],
    [`--tool file_read --args '{"path":"/etc/passwd"}'`, 'a tool call'],
    ['--threads my.json -- git push', 'a rule before it is used'],
    ['--channel discord -- git push', 'for people on Discord'],
  ],
  advice: unescaped,
  async run(context, { tool, tools, args: input, threads, channel, json = false, ...levels }, { command: words }) {
    const setup = onChannel(loadSetup(context, levels), channel)
    const options = await explainedGate(setup, { tools: tool === undefined ? builtInTools : toolsFor(setup, tool, tools), threads })
    const show = (whole: Explanation) => {
      const said = setup.redactor.value(whole)
      return json ? context.process.stdout.write(`${JSON.stringify(said)}\n`) : print(context, said)
    }
    if (tool !== undefined) {
      if (words.length > 0) throw new CliExit(exitCodes.usage, twoQuestions(tool, words))
      return show(await explainCall(options, { name: tool, input: parseObject(input ?? '{}', '--args') }))
    }
    if (input !== undefined) throw usageError('--args are the arguments of a tool; name it with --tool')
    if (words.length === 0) throw usageError(`nothing to explain: braidclaw policy explain -- COMMAND, or --tool NAME --args ARGS`)
    show(await explainCommand(options, commandLine(words)))
  },
})

/** @throws CliExit 2 when the daemon has no such channel */
function onChannel(setup: CliSetup, name: string | undefined): CliSetup {
  if (name === undefined) return setup
  const kind = channelKinds.find((one) => one.name === name)
  if (kind) return narrowSetup(setup, channelProfileOf(setup.config, kind))
  const names = channelKinds.map((one) => one.name)
  throw usageError(`--channel ${name}: no such channel${didYouMean(name, names)}; there are: ${names.join(', ')}`)
}

/** Explains `--` when the parser took flags of the user's command for ours. */
function unescaped(words: readonly string[]): string | undefined {
  const [first = '-'] = words
  return first.startsWith('-') ? undefined : `A command goes behind --: braidclaw policy explain -- ${words.map(quoteText).join(' ')}`
}

function twoQuestions(tool: string, [first = '']: readonly string[]): string {
  if (!first.startsWith('{')) return 'error: --tool and a command are two questions; ask one'
  return `error: the arguments of a tool stand behind --args: braidclaw policy explain --tool ${tool} --args ${quoteText(first)}`
}

/** One word is a script as typed; several words are an argv, which is quoted into a script. */
function commandLine(words: readonly string[]): string {
  const [only = ''] = words
  return words.length === 1
    ? only
    : words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ')
}

/** @throws CliExit 2 when the text is not a JSON object. */
export function parseObject(text: string, flag = '--json'): JsonObject {
  try {
    const value: unknown = JSON.parse(text)
    if (isJsonObject(value)) return value
  } catch {}
  throw usageError(`${flag} must be one JSON object, such as '{"path":"."}'; got: ${text.slice(0, 80)}`)
}

function print({ process: { stdout } }: CliContext, said: Explanation): void {
  const { verdict, risk, rule, meaning, reason, summary, labels, plan, changes, network, level, levels, rules } = said
  const command = plan?.commands[0]?.plan
  stdout.write(
    [
      `verdict:    ${verdict}`,
      `risk:       ${risk}`,
      `rule:       ${rule}${meaning ? ` (${meaning})` : ''}`,
      `reason:     ${reason}`,
      `call:       ${summary}`,
      ...(labels
        ? [`counts as:  ${labels.map((label) => label.replace('_', ' ').replace('reads untrusted', 'reads foreign text')).join(', ')}`]
        : []),
      ...(command
        ? [
            `runs:       ${command.kind === 'argv' ? JSON.stringify([command.executable, ...command.argv.slice(1)]) : `bash --noprofile --norc -c ${JSON.stringify(command.script)}`}`,
          ]
        : []),
      ...(network.length > 0 ? [`network:    ${network.join(', ')}`] : []),
      ...(changes === undefined ? [] : [`changes:    ${changes}`]),
      ...rules.map((one) => `your rule:  ${one.rule} ${told(one)} (${one.file})`),
      ...levelNames.map(
        (name) => `${`${name}:`.padEnd(11)} ${levels[name].verdict} by ${levels[name].rule}${name === level ? ' (in force)' : ''}`,
      ),
      '',
    ].join('\n'),
  )
}

function told({ denies, endsRun, after, until, atMost, changes, asks }: RuleFinding): string {
  if (changes !== undefined && !denies)
    return `${asks ? 'asks about' : 'drops'} what it changes, if that touches ${JSON.stringify(changes)}`
  const conditions = [
    ...(after === undefined ? [] : [`after ${JSON.stringify(after)}`]),
    ...(atMost === undefined || atMost === 0 ? [] : [`from call ${atMost + 1} of a run on`]),
    ...(until === undefined ? [] : [`until ${JSON.stringify(until)} has succeeded`]),
  ]
  const verb = denies ? 'denies it' : endsRun ? 'lets it pass and ends the run' : 'would deny it'
  return [verb, ...conditions].join(' ')
}

/** Implements `security show`: every list and level in force, and how commands run on this machine. */
export const show = command({
  flags: { ...jsonFlag, ...autonomyFlag, ...approveFlag, ...workspaceFlag },
  examples: [
    ['', 'what is allowed, asked about and refused here'],
    ['--autonomy full', 'for another level'],
    ['--json', 'for scripts'],
  ],
  exits: [9],
  async run(context, { json = false, ...levels }) {
    const setup = loadSetup(context, levels)
    const standing = await withMemory(setup, async ({ approvals }) => approvals.rules().length)
    const shown = setup.redactor.value(await policyInForce(setup, standing))
    context.process.stdout.write(json ? `${JSON.stringify(shown)}\n` : page(shown))
  },
})

function page(shown: PolicyInForce): string {
  const { commands, settings, levels, network } = shown
  const names = ({ reason, names: all }: { readonly reason: string; readonly names: readonly string[] }) => `  ${reason}: ${all.join(' ')}`
  const column = Math.max(...levels.map(({ kind }) => kind.length)) + 2
  return [
    `level:      ${shown.level}${shown.level === 'auto' ? ' (supervised with --auto)' : ''}`,
    `workspace:  ${shown.workspace}${shown.workspaceOnly ? ', and nothing outside it' : '; workspace_only is off'}`,
    `commands:   ${modeText(commands)}`,
    `settings:   ask = ${settings.ask}, unlisted_commands = ${settings.unlistedCommands}, readonly_commands = ${settings.readonlyCommands}, egress = ${settings.egress}, direct = ${settings.direct}`,
    `network:    ${network.allowedDomains.join(', ') || 'no host is listed'}; ports ${network.ports.join(', ')}`,
    ...(shown.tools ? [`tools:      ${shown.tools.join(', ')}`] : []),
    `standing:   ${shown.standingRules} always allowed (braidclaw approvals rules list)`,
    '',
    `${''.padEnd(column)}${levelNames.map((name) => name.padEnd(12)).join('')}`.trimEnd(),
    ...levels.map((row) => `${row.kind.padEnd(column)}${levelNames.map((name) => row[name].padEnd(12)).join('')}`.trimEnd()),
    '',
    'never run, however they are hidden (forbidden_commands):',
    `  ${shown.forbiddenCommands.join(' ')}`,
    'never touched (forbidden_paths, and our own files):',
    `  ${[...shown.forbiddenPaths, ...shown.protectedPaths].join(' ')}`,
    'never read (forbidden_reads):',
    `  ${shown.forbiddenReads.join(' ')}`,
    'read and run by commands in your home folder, besides the system (from your PATH):',
    `  ${shown.ownTools.join(' ') || 'nothing'}`,
    'never written, wherever they lie:',
    ...shown.protectedNames.map(names),
    'never changed without a question but in full, because tools run or obey them unasked:',
    ...shown.asksAlways.map(names),
    'allow list of commands (built in, and allow_commands):',
    `  ${shown.allowCommands.join(' ')}`,
    '',
  ].join('\n')
}

function modeText({ confined, transaction, network, why }: CommandMode): string {
  const because = why === undefined ? '' : ` (${why})`
  if (!confined) return `nothing confines them${because}`
  const views = transaction ? 'each on a private view of the workspace' : `directly on the workspace${because}`
  return `in the sandbox, ${views}; network ${network === false ? 'never' : 'only to hosts of the command'}`
}
