import { describe, expect, test } from 'bun:test'
import { normalize } from 'node:path'
import { callOf, gateOf, said } from '../gate.fixture.ts'
import type { Disk } from './link.ts'

const at = '/home/u/ws'

/** Maps links to their targets; for a path, the longest link that it begins with is followed. */
function seeing(links: { readonly [link: string]: string }): Disk {
  const real = (path: string): string => {
    const plain = normalize(path).replace(/(?<=.)\/$/, '')
    const link = Object.keys(links).findLast((one) => plain === `${at}/${one}` || plain.startsWith(`${at}/${one}/`))
    return link === undefined ? plain : `${links[link]}${plain.slice(at.length + 1 + link.length)}`
  }
  return { real, linked: (pattern) => (pattern.endsWith('/many*') ? undefined : Object.keys(links).map((link) => `${at}/${link}`)) }
}

const disk = seeing({
  pw: '/etc/passwd',
  data: '/opt/data',
  folder: '/opt',
  inner: `${at}/src/file`,
  safe: `${at}/vault/key`,
  hook: `${at}/.git/hooks/pre-commit`,
  python: '/usr/bin/python3',
  remove: '/usr/bin/rm',
})
const saying = (command: string, fields: Parameters<typeof said>[2] = {}) => said('shell', { command }, fields, { disk })

describe('a link that leads out of the workspace', () => {
  test.each([
    'cat pw',
    'cat ./pw',
    'cat data',
    'ls folder/x',
    'cat folder/x/y',
    'cd folder && cat x',
    'cd folder; ls',
    'cat < pw',
    'cat 0< data',
    'cat *',
    'cat p*',
    'git diff --no-index pw x',
    'cat "$(echo pw)"',
    'f=pw; cat "$f"',
    'cat src/../pw',
    'cat pw | git hash-object --stdin',
  ])('is refused in %s', async (command) => expect(await saying(command)).toBe('deny high path.outside_workspace'))

  test('is refused where it leads to a forbidden path, wherever that lies', async () => {
    expect(await saying('cat safe')).toBe('deny high path.forbidden')
    expect(await saying('cat pw', { workspaceOnly: false })).toBe('deny high path.forbidden')
  })

  test('is refused for writing where it leads to a protected name', async () => {
    expect(await saying('echo x > hook')).toBe('deny high path.protected')
    expect(await saying('cat hook')).toBe('ask medium autonomy.medium_asks')
  })

  test('says where it leads', async () => {
    const { reason } = await gateOf({}, { disk }).judge(callOf('shell', { command: 'cat pw' }))
    expect(reason).toStartWith('"pw" leads through a symbolic link to "/etc/passwd"; ')
  })

  test('is refused when a pattern matches more than can be looked at', async () =>
    expect(await saying('cat many*')).toBe('deny high path.too_many'))
})

describe('a link to a program', () => {
  test('is that program', async () => {
    expect(await saying('./remove x', { autonomy: 'full' })).toBe('deny high command.forbidden')
    expect(await saying('./python x.py', { autonomy: 'full' })).toBe('allow high autonomy.full')
    expect(await saying('cat python', { autonomy: 'full' })).toBe('deny high path.outside_workspace')
  })
})

describe('the question', () => {
  const ask = async (command: string, links: Disk) =>
    gateOf({ workspaceOnly: false, forbiddenPaths: ['/etc'] }, { disk: links }).judge(callOf('shell', { command }))

  test('shows what each link leads to, behind a command of any length', async () => {
    expect((await ask('cat data', disk)).summary).toBe('shell: /usr/bin/cat data [data → /opt/data]')
    const long = await ask(`cat data ${'x/'.repeat(400)}`, disk)
    expect(long.summary).toEndWith(' [data → /opt/data]')
  })

  test('is bound to it: with another end it is another plan', async () => {
    const plans = await Promise.all([disk, seeing({ data: '/opt/other' }), seeing({})].map((links) => ask('cat data', links)))
    expect(plans.map(({ verdict }) => verdict)).toEqual(['ask', 'ask', 'ask'])
    expect(new Set(plans.map(({ plan }) => plan)).size).toBe(3)
  })

  test('names the end of a link that is written through among what is written', async () => {
    expect((await ask('touch inner', disk)).writes).toEqual([`${at}/inner`, `${at}/src/file`])
  })
})

describe('inside the workspace', () => {
  test('a link that stays inside is as free as its end', async () => {
    expect(await saying('cat inner')).toBe('ask medium autonomy.medium_asks')
    expect(await saying('cat src/file')).toBe('ask medium autonomy.medium_asks')
  })

  test('a file tool is told of the end of a link, and asks for that', async () => {
    const { summary } = await gateOf({}, { disk }).judge(callOf('file_write', { path: 'inner' }))
    expect(summary).toBe(`file_write: write ${at}/inner → ${at}/src/file`)
  })
})
