/** Hooks as people publish them for Claude Code, rewritten for programs that every Debian has; each runs from a project's own settings. */

import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { making, outputs, results, stage } from '../../../../../test/support/hooks.ts'
import { events } from '../../../../../test/support/host.ts'
import { needs } from '../../../../../test/support/needs.ts'

const real = test.if(needs('bwrap'))
const write = (path: string, content = 'x') => ['file_write', { path, content }] as const
const shell = (command: string) => ['shell', { command }] as const

type Group = { readonly matcher?: string; readonly hooks: readonly object[] }
const group = (command: string, matcher?: string, more: object = {}): Group => ({ matcher, hooks: [{ type: 'command', command, ...more }] })

function project(hooks: { readonly [event: string]: readonly Group[] }, files: { readonly [path: string]: string } = {}, config?: string) {
  return stage({ files: { '.claude/settings.json': JSON.stringify({ hooks }), ...files }, trusted: true, config })
}

describe('public examples', () => {
  real('format after an edit', async () => {
    const files = {
      '.claude/hooks/format.sh':
        'path=$(sed -n \'s/.*"file_path":"\\([^"]*\\)".*/\\1/p\')\ncase $path in *.py) sed -i "s/[ \\t]*$//" "$path";; esac\n',
    }
    await using on = await project(
      { PostToolUse: [group('sh "$CLAUDE_PROJECT_DIR"/.claude/hooks/format.sh', 'Edit|MultiEdit|Write')] },
      files,
    )
    const [python = '', text = ''] = await results(await on.begin(making(write('a.py', 'x = 1   \n'), write('a.txt', 'x   \n'))))
    expect([on.read('a.py'), on.read('a.txt')]).toEqual(['x = 1\n', 'x   \n'])
    expect(python).toContain('[hook.claude.PostToolUse.1.1 changed the workspace')
    expect(text).not.toContain('hook')
  })

  real('block rm -rf', async () => {
    const command = 'if grep -Eq "rm[^|;&]*-[a-z]*r[a-z]*f"; then echo "rm -rf is not allowed" >&2; exit 2; fi'
    await using on = await project({ PreToolUse: [group(command, 'Bash')] }, { 'build/x': 'x' })
    const [removed, listed] = await results(await on.begin(making(shell('rm -rf build'), shell('ls build'))))
    expect(removed).toBe('Denied by hook.claude.PreToolUse.1.1: rm -rf is not allowed')
    expect([listed, existsSync(join(on.cwd, 'build/x'))]).toEqual(['x', true])
  })

  real('protect .env, lock files and .git', async () => {
    const command =
      'case $(sed -n \'s/.*"file_path":"\\([^"]*\\)".*/\\1/p\') in *.env|*package-lock.json|*/.git/*) echo "protected file" >&2; exit 2;; esac'
    await using on = await project({ PreToolUse: [group(command, 'Edit|Write')] })
    const told = await results(await on.begin(making(write('package-lock.json'), write('src/a.ts'))))
    expect(told.map((text) => text.includes('protected file'))).toEqual([true, false])
  })

  real('log every command: without a word to the model, and without a trace where the sandbox keeps it from writing', async () => {
    await using on = await project({ PreToolUse: [group('cat >> "$HOME"/bash-command-log.txt', 'Bash')] })
    expect(await results(await on.begin(making(shell('echo hello'))))).toEqual(['hello'])
  })

  real('add git status at the start of a session', async () => {
    await using on = await project({ SessionStart: [group('echo "On branch main, 2 files changed"')] })
    const read: string[] = []
    await events(
      await on.begin(async function* (messages) {
        const last = messages.at(-1)
        if (last?.role === 'user') read.push(last.content)
        yield { type: 'text', content: 'ok' }
      }),
    )
    expect(read).toEqual(['go\n\n[hook.claude.SessionStart.1.1 adds: On branch main, 2 files changed]'])
  })

  real('refuse prompts with keys', async () => {
    const command = 'if grep -Eq "sk-[a-zA-Z0-9]{8}"; then echo \'{"decision":"block","reason":"a key is in the prompt"}\'; fi'
    await using on = await project({ UserPromptSubmit: [group(command)] })
    const conversation = await on.begin(making())
    expect(await events(conversation, 'use sk-abcdEFGH1234')).toContainEqual({
      ...{ type: 'error', code: 'denied', message: 'hook.claude.UserPromptSubmit.1.1: a key is in the prompt', recoverable: true },
    })
    expect(await events(conversation, 'hello')).toContainEqual({ type: 'done', stopReason: 'end_turn', result: 'done' })
  })

  real('ask before a push, by permissionDecision', async () => {
    const answer = '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"a push?"}}'
    await using on = await project({ PreToolUse: [group(`grep -q '"command":"echo push' && echo '${answer}'; exit 0`, 'Bash')] })
    const asked: string[] = []
    const conversation = await on.begin(making(shell('echo push'), shell('echo pull')))
    for await (const event of conversation.run('go'))
      if (event.type === 'approval_gate') {
        asked.push(conversation.gate(event.gateId)?.judgement.reason ?? '')
        await conversation.approve(event.gateId, { allow: true, by: 'ann' })
      }
    expect(asked).toEqual(['a push?'])
  })

  real('approve everything: the gate denies as before', async () => {
    const answer = '{"decision":"approve","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'
    await using on = await project({ PreToolUse: [group(`echo '${answer}'`, '*')] }, {}, '[security]\nautonomy = "readonly"\n')
    expect(await results(await on.begin(making(write('a.txt'))))).toEqual([expect.stringContaining('Denied by autonomy.readonly')])
    await using asking = await project({ PreToolUse: [group(`echo '${answer}'`, '*')] }, {}, '')
    const conversation = await asking.begin(making(write('a.txt')))
    for await (const event of conversation.run('go'))
      if (event.type === 'approval_gate') await conversation.approve(event.gateId, { allow: false, by: 'ann' })
    expect(existsSync(join(asking.cwd, 'a.txt'))).toBe(false)
  })

  real('tell the model what the linter found', async () => {
    const command = 'grep -q "TODO" && { echo "a.ts: TODO is left" >&2; exit 2; }; exit 0'
    await using on = await project({ PostToolUse: [group(command, 'Write')] })
    const [result = ''] = await results(await on.begin(making(write('a.ts', '// TODO'))))
    expect(result).toContain('[hook.claude.PostToolUse.1.1 objects, after the call: a.ts: TODO is left]')
    expect(on.read('a.ts')).toBe('// TODO')
  })

  real('notify when a question waits, and when the turn has ended', async () => {
    const hooks = { Notification: [group('grep -q "waits for a yes"')], Stop: [group('grep -q \'"stop_hook_active":false\'')] }
    await using on = await project(hooks, {}, '')
    const conversation = await on.begin(making(write('a.txt')))
    for await (const event of conversation.run('go'))
      if (event.type === 'approval_gate') await conversation.approve(event.gateId, { allow: true, by: 'ann' })
    expect(on.lines.filter((line) => line.includes('failed'))).toEqual([])
  })
})

describe('by the original’s rules', () => {
  real('any other failure is reported, and the run goes on; three in a row switch it off', async () => {
    await using on = await project({ PreToolUse: [group('echo broken >&2; exit 1', 'Write')] })
    const told = await results(await on.begin(making(...['a', 'b', 'c', 'd'].map((name) => write(name)))))
    expect(told.every((text) => text.startsWith('created'))).toBe(true)
    expect(on.lines.filter((line) => line.includes('failed: it ended with exit code 1: broken'))).toHaveLength(3)
    expect(on.lines.filter((line) => line.includes('is off for the rest'))).toHaveLength(1)
  })

  real('the names, arguments and fields are theirs', async () => {
    const command = 'cat >&2; exit 2'
    await using on = await project({ PreToolUse: [group(command, 'Read')] })
    const [result = ''] = outputs(await events(await on.begin(making(['file_read', { path: 'notes.md' }]))))
    const seen: unknown = JSON.parse(result.slice(result.indexOf('{')))
    expect(seen).toMatchObject({
      ...{ hook_event_name: 'PreToolUse', tool_name: 'Read', cwd: on.cwd, tool_input: { file_path: join(on.cwd, 'notes.md') } },
    })
  })

  real('a hook cannot write in the workspace before a call', async () => {
    await using on = await project({ PreToolUse: [group('echo x > made; exit 0', '*')] })
    await results(await on.begin(making(write('a.txt'))))
    expect(existsSync(join(on.cwd, 'made'))).toBe(false)
  })
})

test('nothing of an untrusted folder runs, and the person learns why; with claude_code = false nothing runs either', async () => {
  const files = {
    '.claude/settings.json': JSON.stringify({ hooks: { UserPromptSubmit: [group('exit 2')] } }),
    '.braidclaw/hooks/no.toml': 'on = ["prompt"]\nrun = "exit 1"\n',
  }
  await using on = await stage({ files })
  expect(await events(await on.begin(making()))).toContainEqual({ type: 'done', stopReason: 'end_turn', result: 'done' })
  expect(on.lines.join('')).toContain('do not run: this folder is not trusted')
  await using off = await stage({
    files: { '.claude/settings.json': files['.claude/settings.json'] },
    trusted: true,
    config: '[hooks]\nclaude_code = false\n',
  })
  expect(await events(await off.begin(making()))).toContainEqual({ type: 'done', stopReason: 'end_turn', result: 'done' })
})

test('the settings themselves stay closed to the model', async () => {
  await using on = await project({ UserPromptSubmit: [] })
  const [result = ''] = await results(await on.begin(making(write('.claude/settings.json', '{}'))))
  expect(result).toStartWith('Denied by')
  expect(readFileSync(join(on.cwd, '.claude/settings.json'), 'utf8')).toContain('UserPromptSubmit')
})
