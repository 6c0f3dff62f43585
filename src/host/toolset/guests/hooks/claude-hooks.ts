/**
 * Reads the hooks in `.claude/settings.json` and `settings.local.json` of a project, by the rules of their original: exit code 2 vetoes, any
 * other failure is reported and the step goes on. A hook that allows something changes nothing here.
 */

import { join, resolve } from 'node:path'
import { readConfigFile } from '../../../../config/text/read-toml-file.ts'
import { isJsonObject, isObject, type JsonObject, parseJson } from '../../../../kit/json.ts'
import { parseCondition } from '../../../../runtime/rules/condition.ts'
import { createReport } from '../../../../runtime/rules/problem.ts'
import type { Hook, HookAnswer, HookEvent, LoadedHooks, Occasion } from './hook.ts'

const eventsHere: { readonly [event: string]: HookEvent | undefined } = {
  ...{ SessionStart: 'session_start', UserPromptSubmit: 'prompt', PreToolUse: 'before_tool', PostToolUse: 'after_tool' },
  ...{ Stop: 'stop', Notification: 'notification', PreCompact: 'compact' },
}

/** The names of our tools there; a tool that is not here keeps its name. */
export const toolsThere: { readonly [tool: string]: string | undefined } = {
  ...{ shell: 'Bash', file_edit: 'Edit', file_write: 'Write', file_read: 'Read', file_list: 'LS', search: 'Grep', http: 'WebFetch' },
}
const fileArguments: { readonly [key: string]: string | undefined } = { path: 'file_path', old: 'old_string', new: 'new_string' }

/** Never throws: a file that cannot be used is reported, and nothing in it runs. */
export function claudeHooks(workspace: string, timeoutS: number): LoadedHooks {
  const notices: string[] = []
  const hooks = ['settings.json', 'settings.local.json'].flatMap((name) => {
    const file = join(workspace, '.claude', name)
    const read = readConfigFile(file)
    if (read.state === 'missing') return []
    const data = read.state === 'text' && !read.worldWritable ? parseJson(read.text) : undefined
    if (isObject(data)) return isObject(data.hooks) ? hooksOf(data.hooks, { file, timeoutS, workspace, notices }) : []
    notices.push(`no hook of ${file} runs: it must be a JSON object that not every user of this machine may change`)
    return []
  })
  return { hooks, notices, problems: [] }
}

type SettingsFile = { readonly file: string; readonly timeoutS: number; readonly workspace: string; readonly notices: string[] }

function hooksOf(given: { readonly [event: string]: unknown }, around: SettingsFile): Hook[] {
  const { file, notices } = around
  return Object.entries(given).flatMap(([there, groups]) =>
    (Array.isArray(groups) ? groups : [groups]).flatMap((group: unknown, at) => {
      const { matcher, hooks } = isObject(group) ? group : {}
      return (Array.isArray(hooks) ? hooks : [undefined]).flatMap((hook: unknown, n) => {
        const event = Object.hasOwn(eventsHere, there) ? eventsHere[there] : undefined
        const name = `claude.${there}.${at + 1}.${n + 1}${file.endsWith('.local.json') ? '.local' : ''}`
        if (event && isObject(hook) && typeof hook.command === 'string' && hook.type === 'command')
          return [hookOf({ run: hook.command, timeout: hook.timeout, matcher }, { ...around, name, there, event })]
        notices.push(`${name} of ${file} does not run here: only hooks of the type "command" for ${Object.keys(eventsHere).join(', ')} do`)
        return []
      })
    }),
  )
}

type Given = { readonly run: string; readonly timeout: unknown; readonly matcher: unknown }
type Place = SettingsFile & { readonly name: string; readonly there: string; readonly event: HookEvent }

function hookOf({ run, timeout, matcher }: Given, { name, there, event, file, timeoutS, workspace, notices }: Place): Hook {
  const isAny = matcher === undefined || matcher === '' || matcher === '*'
  const problems: string[] = []
  const pattern = typeof matcher === 'string' ? { regex: `^(?:${matcher})$` } : matcher
  const condition = isAny ? undefined : parseCondition(pattern, createReport(problems, `${name}: matcher`), { workspace, home: '/' })
  // A guard must not vanish because its matcher is wrong.
  notices.push(...problems.map((problem) => `${problem}; the hook runs for every tool`))
  return {
    ...{ name, file, event, run, strict: false, sandbox: true, env: { CLAUDE_PROJECT_DIR: workspace } },
    // What a formatter writes after a call is judged as the changes of a command are.
    write: event === 'after_tool',
    timeoutS: typeof timeout === 'number' && timeout > 0 && timeout <= 600 ? timeout : timeoutS,
    matches: (occasion) => condition?.holds(subjectOf(occasion)) ?? true,
    input: ({ call, facts = {} }, base) => ({
      ...{ session_id: base.conversation, transcript_path: '', cwd: workspace, permission_mode: 'default', hook_event_name: there },
      ...(call ? { tool_name: nameThere(call.name), tool_input: inputThere(call, workspace) } : {}),
      ...(facts.outcome === undefined ? facts : { tool_response: facts.outcome }),
      ...(event === 'stop' ? { stop_hook_active: false } : {}),
      ...(event === 'compact' ? { trigger: 'auto', custom_instructions: '' } : {}),
    }),
    answer: (end) => answer(end, event === 'session_start' || event === 'prompt'),
  }
}

function nameThere(tool: string): string {
  return (Object.hasOwn(toolsThere, tool) ? toolsThere[tool] : undefined) ?? tool
}

/** Some events have no tool: their matchers are about how the session starts, and why it is compacted. */
function subjectOf({ event, call, facts }: Occasion): string {
  if (event === 'compact') return 'auto'
  return event === 'session_start' ? String(facts?.source) : nameThere(call?.name ?? '')
}

function inputThere({ name, input }: NonNullable<Occasion['call']>, workspace: string): JsonObject {
  if (!/^file_(?:edit|write|read)$/.test(name)) return input
  const { path } = input
  const named = Object.fromEntries(Object.entries(input).map(([key, value]) => [fileArguments[key] ?? key, value]))
  return typeof path === 'string' ? { ...named, file_path: resolve(workspace, path) } : named
}

const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)

function answer({ code, stdout, stderr }: Parameters<Hook['answer']>[0], takesText: boolean): HookAnswer {
  if (code === 2) return { verdict: 'veto', reason: stderr }
  if (code !== 0) return { failed: `it ended with exit code ${code}: ${stderr.trim() || 'no message on stderr'}` }
  const given = stdout.trimStart().startsWith('{') ? parseJson(stdout) : undefined
  if (!isJsonObject(given)) return takesText ? { context: stdout } : {}
  const own = isObject(given.hookSpecificOutput) ? given.hookSpecificOutput : {}
  const more = { context: text(own.additionalContext), message: text(given.systemMessage) }
  const reason = text(own.permissionDecisionReason) ?? text(given.reason) ?? text(given.stopReason)
  if (given.continue === false || given.decision === 'block' || own.permissionDecision === 'deny')
    return { ...more, verdict: 'veto', reason }
  return own.permissionDecision === 'ask' ? { ...more, verdict: 'ask', reason } : more
}
