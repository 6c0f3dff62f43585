/** Slash commands of files and skills: what they ask the model, what they may call, and what they may not be. */

import { describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Slash } from '../../src/channels/terminal/slash/contract.ts'
import { slash, slashCommands } from '../../src/channels/terminal/slash/slash.ts'
import { reservedNames } from '../../src/host/toolset/guests/skills/slash-commands.ts'
import { bodiesOf, calls, results, type Stage, stage } from '../support/project.ts'

function own({ at }: Stage, file: string, text: string) {
  const path = join(at.home, '.braidclaw', file)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** Runs one turn, and returns what the person asked the model in it. */
async function asked(on: Stage, message: string, ...args: readonly string[]) {
  const ran = await on.at.run(['agent', '-m', message, ...args])
  return {
    ...ran,
    prompt: on
      .asked()
      .at(-1)
      ?.findLast(({ role }) => role === 'user')?.content,
  }
}

const deploy = '---\ndescription: Ship it\nargument-hint: PLACE\n---\nDeploy to $1, not to "$2". All: $ARGUMENTS. Costs $10, $x.\n'

describe('what is no command', () => {
  test('a file of an untrusted project, and one with the name of a built-in command', async () => {
    using on = stage()
    on.at.file('.claude/commands/deploy.md', 'POISON')
    expect((await asked(on, '/deploy now')).prompt).toBe('/deploy now')
    own(on, 'commands/help.md', 'POISON')
    own(on, 'commands/new.md', 'POISON')
    for (const message of ['/help', '/new', '/etc/hosts says what?', '/']) expect((await asked(on, message)).prompt).toBe(message)
    expect((await asked(on, '/help')).stderr).toContain('help.md is not a command: /help is a command of BraidClaw; rename the file')
  })

  test('the names of the terminal are all reserved', () => {
    expect(slashCommands.map(([usage]) => usage.slice(1).split(' ')[0]).filter((name = '') => !reservedNames.includes(name))).toEqual([])
  })

  test('a misspelled one asks the model nothing and names the one that was meant', async () => {
    using on = stage()
    own(on, 'commands/deploy.md', deploy)
    const { code, stderr } = await asked(on, '/deplyo now')
    expect([code, stderr, on.asked().length]).toEqual([2, expect.stringContaining('no command "/deplyo"; did you mean "/deploy"?'), 0])
    expect((await asked(on, ' /deplyo now')).prompt).toContain('/deplyo now')
  })

  test('a link out of the project, a file that is too long, and a second one of the same name', async () => {
    using on = stage()
    own(on, 'commands/same.md', 'mine')
    own(on, 'commands/long.md', 'x'.repeat(70_000))
    on.at.file('.claude/commands/deep/same.md', 'theirs')
    await on.trust()
    expect((await asked(on, '/same')).prompt).toBe('mine')
    const { prompt, stderr } = await asked(on, '/long')
    expect([prompt, stderr]).toEqual(['/long', expect.stringContaining('it has 70000 bytes; 65536 are the limit')])
  })
})

describe('a command', () => {
  test('puts its arguments where the file names them, once, and below it where it names none', async () => {
    using on = stage()
    own(on, 'commands/deploy.md', deploy)
    on.at.file('.claude/commands/web/look.md', 'Look at the page.\n!`touch ran`\n@notes.txt\n')
    on.at.file('notes.txt', 'UNICORN')
    await on.trust()
    expect((await asked(on, '/deploy "the $2 stage" $ARGUMENTS')).prompt).toBe(
      'Deploy to the $2 stage, not to "$ARGUMENTS". All: "the $2 stage" $ARGUMENTS. Costs $10, $x.',
    )
    expect((await asked(on, '/look twice')).prompt).toBe('Look at the page.\n!`touch ran`\n@notes.txt\n\nArguments: twice')
    expect(await Bun.file(join(on.at.workspace, 'ran')).exists()).toBe(false)
  })

  test('of a skill gives the model the skill and the arguments', async () => {
    using on = stage()
    own(on, 'skills/mail/SKILL.md', '---\nname: mail\ndescription: Send mail\n---\nWrite to the team, run: sh -c "$1".\n')
    expect((await asked(on, '/mail about lunch')).prompt).toBe(
      'Work by this skill.\n\nSkill mail (its folder for commands: /skills/mail)\n\nWrite to the team, run: sh -c "$1".\n\nArguments: about lunch',
    )
  })
})

describe('allowed-tools', () => {
  const limited = (tools: string) => `---\nallowed-tools: ${tools}\n---\nLook.\n`
  const tried = calls(['file_read', { path: 'a.txt' }], ['file_write', { path: 'b.txt', content: 'x' }], ['file_list', { path: '.' }])

  test('narrow what the model is offered and what it may call, also at full autonomy, for that turn alone', async () => {
    using on = stage([tried, { text: ['Seen.'] }, tried], '[security]\nautonomy = "full"\n')
    on.at.file('a.txt', 'milk')
    own(on, 'commands/look.md', limited('Read'))
    await asked(on, '/look')
    expect(on.tools().map(({ name }) => name)).toEqual(['ask_user', 'file_list', 'file_read', 'pdf_extract', 'result_read'])
    const [read, write, list] = results(on.asked().at(-1))
    expect([read, write, list]).toEqual([
      'milk',
      expect.stringContaining('this turn may only use "Read"'),
      expect.stringContaining('a.txt'),
    ])
    expect(await Bun.file(join(on.at.workspace, 'b.txt')).exists()).toBe(false)
    expect((await bodiesOf(on.at, 'run.start')).at(-1).allowedTools).toEqual(['Read'])
    await asked(on, 'go on', '-c')
    expect(await Bun.file(join(on.at.workspace, 'b.txt')).text()).toBe('x')
  })

  test('widen nothing: what the operator does not list, or the level forbids, stays so', async () => {
    using on = stage([tried], '[security]\nautonomy = "readonly"\n[channels.cli]\ntools_allow = ["file_write", "file_list"]\n')
    on.at.file('a.txt', 'milk')
    own(on, 'commands/look.md', limited('Read, Write'))
    await asked(on, '/look')
    expect(on.tools().map(({ name }) => name)).toEqual(['file_list', 'file_write'])
    const [read, write] = results(on.asked().at(-1))
    expect(read).not.toContain('milk')
    expect(write).toContain('readonly')
  })

  test('with a pattern permit one plain command that begins with it', async () => {
    const run = (command: string): [string, object] => ['shell', { command }]
    using on = stage(
      [calls(run('echo one'), run('echo one && touch two'), run('touch three'), run('echoes'), run('echo $(touch four)'))],
      '[security]\nautonomy = "full"\n',
    )
    own(on, 'commands/look.md', limited('Bash(echo:*)'))
    await asked(on, '/look')
    const said = results(on.asked().at(-1))
    expect(said.map((text) => text.includes('allowed-tools'))).toEqual([false, true, true, true, true])
  })

  test('hold for a turn that goes on after a limit or a crash', async () => {
    const list = calls(['file_list', { path: '.' }])
    const write = calls(['file_write', { path: 'b.txt', content: 'x' }])
    using on = stage([list, list, write], '[security]\nautonomy = "full"\n')
    own(on, 'commands/look.md', limited('Read'))
    expect((await asked(on, '/look', '--max-turns', '1')).code).toBe(5)
    expect((await on.at.run(['agent', '--continue-turn'])).code).toBe(3)
    expect((await bodiesOf(on.at, 'run.start')).map(({ allowedTools }) => allowedTools)).toEqual([['Read'], ['Read']])
    expect(on.tools().map(({ name }) => name)).not.toContain('file_write')
    expect(await Bun.file(join(on.at.workspace, 'b.txt')).exists()).toBe(false)
  })
})

test('the terminal lists them, takes a known one as a message, and names the one that was meant', async () => {
  const written: string[] = []
  const command = { name: 'deploy', usage: 'deploy PLACE', description: 'Ship\u001b[2J it', source: '' }
  const conversation = { commands: async () => ({ list: [command], turnOf: () => undefined }) }
  const setup = { context: { process: { stdout: { write: (text: string) => void written.push(text) } } } }
  const typed = (line: string) => slash({ line, setup, conversation } as unknown as Slash)
  expect([await typed('/deploy now'), await typed('/deplyo'), await typed('/help')]).toEqual(['message', 'done', 'done'])
  expect(written.join('')).toContain('no command "/deplyo"; did you mean "/deploy"?')
  expect(written.join('')).toContain('  /deploy PLACE            Ship\\u{1b}[2J it\n')
})
