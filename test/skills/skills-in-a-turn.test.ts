/** Skills in a turn through the real program: the list in the prompt, the text on demand, their scripts in the sandbox. */

import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { needs } from '../support/needs.ts'
import { calls, results, type Stage, stage } from '../support/project.ts'

const skillText = (name: string, description: string, body = 'Do it well.', more = '') =>
  `---\nname: ${name}\ndescription: ${description}\n${more}---\n${body}\n`

function put(path: string, text: string) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

const homeSkill = ({ at }: Stage, name: string, text: string, folder = '.agents/skills') =>
  put(join(at.home, folder, name, 'SKILL.md'), text)
const names = (on: Stage) => on.tools().map((tool) => tool.name)

describe('the list in the prompt', () => {
  test('is absent where there is no skill, and so is the tool', async () => {
    using on = stage()
    on.at.file('AGENTS.md', 'Use tabs.')
    await on.trust()
    await on.turn()
    expect([on.system().includes('kill'), names(on).includes('skill')]).toEqual([false, false])
  })

  test('has nothing of a folder that is not trusted, not even in the place of a skill of the same name', async () => {
    using on = stage()
    on.at.file('.agents/skills/pdf/SKILL.md', skillText('pdf', 'POISON'))
    on.at.file('.claude/skills/more/SKILL.md', skillText('more', 'POISON'))
    await on.turn()
    expect([on.system().includes('POISON'), names(on).includes('skill')]).toEqual([false, false])
    homeSkill(on, 'pdf', skillText('pdf', 'Extract text from PDF files'))
    await on.turn()
    expect(on.system()).toContain('\n- pdf — Extract text from PDF files')
    expect(on.system()).not.toContain('POISON')
  })

  test('has a line for each skill of the four folders, and no body', async () => {
    using on = stage()
    on.at.file('.agents/skills/pdf/SKILL.md', skillText('pdf', 'Extract text', 'SECRET STEPS'))
    on.at.file('.claude/skills/deploy/SKILL.md', skillText('deploy', 'Ship\u200b it'))
    homeSkill(on, 'mail', skillText('mail', 'Send mail'))
    homeSkill(on, 'pump', skillText('pump', 'Run the pump'), '.braidclaw/skills')
    on.at.file('AGENTS.md', 'Use tabs.')
    await on.trust()
    await on.turn()
    expect(on.system()).toContain('- pdf — Extract text\n- deploy — Ship\\u{200b} it\n- mail — Send mail\n- pump — Run the pump\n')
    expect(on.system()).not.toContain('SECRET')
    expect(on.system()).toEndWith('Use tabs.')
  })

  test('keeps its budget and says how many are left out', async () => {
    using on = stage([], '[tools]\nskills_bytes = 400\n')
    for (let n = 10; n < 40; n += 1) homeSkill(on, `skill-${n}`, skillText(`skill-${n}`, `Number ${n} ${'long '.repeat(100)}`))
    await on.turn()
    const lines = on
      .system()
      .split('\n')
      .filter((line) => line.startsWith('- '))
    expect(lines).toHaveLength(3)
    expect(Buffer.byteLength(lines.slice(0, -1).join('\n'))).toBeLessThanOrEqual(400)
    expect(lines.at(-1)).toBe('- 28 more: find them with discover')
  })

  test('is left out with a budget of nothing, or where the operator does not list the tool', async () => {
    using none = stage([], '[tools]\nskills_bytes = 0\n')
    homeSkill(none, 'mail', skillText('mail', 'Send mail'))
    await none.turn()
    expect([none.system().includes('mail'), names(none).includes('skill')]).toEqual([false, true])
    using few = stage([], '[channels.cli]\ntools_allow = ["file_read"]\n')
    homeSkill(few, 'mail', skillText('mail', 'Send mail'))
    await few.turn()
    expect([few.system().includes('mail'), names(few)]).toEqual([false, ['file_read']])
  })
})

describe('the tool skill', () => {
  test('reads no file outside of the skill, and nothing of an untrusted project', async () => {
    using on = stage([
      calls(['skill', { name: 'mail/../../../../.ssh/key' }], ['skill', { name: 'mail/link' }], ['skill', { name: 'pdf' }]),
      calls(['skill', { name: 'quantum chromodynamics' }]),
    ])
    put(join(on.at.home, '.ssh/key'), 'UNICORN')
    homeSkill(on, 'mail', skillText('mail', 'Send mail'))
    symlinkSync(join(on.at.home, '.ssh/key'), join(on.at.home, '.agents/skills/mail/link'))
    on.at.file('.agents/skills/pdf/SKILL.md', skillText('pdf', 'Extract text', 'POISON'))
    await on.turn()
    const said = results(on.asked().at(-1)).join('\n')
    expect(said).not.toMatch(/UNICORN|POISON/)
    expect(said).toContain('it leads out of the folder')
    expect(said).toContain('no skill "quantum chromodynamics"; discover finds skills')
  })

  test('returns the text, the files, a file of it, and what fits other words', async () => {
    using on = stage([
      calls(['skill', { name: 'mail' }], ['skill', { name: 'mail/references/form.md' }], ['skill', { name: 'mial' }]),
      calls(['skill', { name: 'pdf' }], ['skill', { name: 'pdf/notes.md' }]),
    ])
    homeSkill(on, 'mail', skillText('mail', 'Send an email', 'First\u202e write.'))
    put(join(on.at.home, '.agents/skills/mail/references/form.md'), 'Dear …')
    on.at.file('.agents/skills/pdf/SKILL.md', skillText('pdf', 'Extract text'))
    on.at.file('.agents/skills/pdf/notes.md', 'Notes.')
    await on.trust()
    await on.turn()
    const [mail, form, found, pdf, notes] = results(on.asked().at(-1))
    expect(mail).toBe('Skill mail (its folder for commands: /skills/mail; files in it: references/form.md)\n\nFirst\\u{202e} write.')
    expect(form).toBe('Dear …')
    expect(found).toContain('no skill "mial"; did you mean "mail"?')
    expect(pdf).toMatch(/^Skill pdf \(no script of it may run: .*braidclaw skill approve .*; files in it: notes\.md\)/)
    expect(notes).toBe('Notes.')
  })

  test('linked documents of AGENTS.md are found by what is to be done, also where there is no skill', async () => {
    using on = stage([calls(['discover', { intent: 'publish a release' }])])
    on.at.file('AGENTS.md', 'Use tabs. [How releases are made](docs/release.md)\n')
    on.at.file('docs/release.md', '# Releases\n\nTag the commit and publish the tarball.\n')
    await on.trust()
    await on.turn()
    expect(results(on.asked().at(-1))[0]).toStartWith('rule docs/release.md (project): How releases are made')
    expect([names(on).includes('discover'), names(on).includes('skill')]).toEqual([true, false])
  })
})

test.if(needs('bwrap'))(
  'a script of a skill runs in the sandbox; its folder is read-only and seen only by commands that name it',
  async () => {
    const run = (command: string): [string, object] => ['shell', { command }]
    using on = stage(
      [
        calls(run('sh /skills/mail/scripts/send.sh; echo x > /skills/mail/new; ls /skills')),
        calls(run(`ls ${'/'}; cat ~/.agents/skills/mail/SKILL.md`)),
      ],
      '[security]\nautonomy = "full"\n',
    )
    homeSkill(on, 'mail', skillText('mail', 'Send mail'))
    homeSkill(on, 'other', skillText('other', 'Other'))
    put(
      join(on.at.home, '.agents/skills/mail/scripts/send.sh'),
      'echo sent from "$0"; cat "$(dirname "$0")/../SKILL.md" | head -2; echo y > sent.txt\n',
    )
    await on.turn()
    const [first = '', second = ''] = results(on.asked().at(-1))
    expect(first).toContain('sent from /skills/mail/scripts/send.sh\n---\nname: mail')
    expect(first).toContain('Read-only file system')
    expect(first).not.toContain('other')
    expect(second).not.toMatch(/^skills$|Send mail/m)
    expect([existsSync(join(on.at.home, '.agents/skills/mail/new')), existsSync(join(on.at.workspace, 'sent.txt'))]).toEqual([false, true])
  },
  30_000,
)

test.if(needs('bwrap'))(
  'a skill that was added is used while it has exactly the approved files',
  async () => {
    const use = calls(['skill', { name: 'mail' }], ['shell', { command: 'sh /skills/mail/send.sh' }])
    using on = stage([{ text: ['No.'] }, use, { text: ['Yes.'] }, use])
    const source = join(on.at.home, 'downloads/mail')
    put(join(source, 'SKILL.md'), skillText('mail', 'Send mail', 'HONEST'))
    put(join(source, 'send.sh'), 'echo sent\n')
    await on.at.run(['skill', 'add', source])
    const { stderr } = await on.turn()
    expect([on.system().includes('mail'), stderr]).toEqual([false, expect.stringContaining('skill mail is not offered')])
    expect((await on.at.run(['skill', 'approve', 'mail', '--yes'])).code).toBe(0)
    await on.turn()
    const [text = '', sent] = results(on.asked().at(-1))
    expect([text.includes('HONEST'), sent]).toEqual([true, expect.stringContaining('sent')])
    put(join(on.at.home, '.braidclaw/skills/added/mail/SKILL.md'), skillText('mail', 'Send mail', 'POISON'))
    await on.turn()
    const [changed = '', gone = ''] = results(on.asked().at(-1))
    expect([on.system().includes('mail'), changed.includes('POISON'), gone.includes('sent')]).toEqual([false, false, false])
  },
  30_000,
)
