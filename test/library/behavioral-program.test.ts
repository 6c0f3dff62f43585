/** `verify --program` and `frontier`, through the real executable: a module of somebody's own is loaded in the sandbox and asked there. */

import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'

const confined = test.if(needs('bwrap'))

const gated = (threads: string) => `
type Event = { readonly type: string; readonly detail?: { readonly command: string } }
const isRisky = ({ type, detail }: Event) => type === 'thought' && detail?.command === 'make'
export default {
  threads: {
    loop: { steps: [{ waitFor: 'thought' }, { request: { type: 'act' } }], repeat: true },
    ${threads}
    witness: { steps: [{ waitFor: isRisky }, { waitFor: 'act', interrupt: 'allow' }, { request: { type: 'unapproved' } }] },
  },
  publicEvents: ['allow'],
  events: [{ type: 'thought', detail: { command: 'make' } }, { type: 'thought', detail: { command: 'ls' } }],
  never: ['unapproved'],
}
`
const gate = "gate: { steps: [{ waitFor: isRisky }, { block: 'act', waitFor: 'allow' }], repeat: true },"

confined('a program that holds, and one without its gate: the shortest run, as text and as JSON', async () => {
  using at = nest()
  at.file('good.ts', gated(gate))
  at.file('bad.ts', gated(''))
  expect(await at.run(['verify', '--program', 'good.ts'])).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^✓ comes to rest\n✓ never unapproved\n\n\d+ states explored\n$/),
    stderr: '',
  })
  const bad = await at.run(['verify', '--program', 'bad.ts'])
  expect(bad.code).toBe(1)
  expect(bad.stdout.split('\n').slice(5)).toEqual([
    ...['never unapproved breaks; a shortest run:', '  1. thought {"command":"make"}, from handlers', '  2. act, from loop'],
    ...['  3. unapproved, from witness', ''],
  ])
  const json = await at.run(['verify', '--program', 'bad.ts', '--json'])
  expect([json.code, JSON.parse(json.stdout).findings[1].steps.length]).toEqual([1, 3])
})

confined('a named export is a program, too, and a search that is cut decides nothing', async () => {
  using at = nest()
  at.file('named.ts', "export const program = { threads: { one: { steps: [{ waitFor: 'never' }] } }, events: [] }")
  expect((await at.run(['verify', '--program', 'named.ts'])).code).toBe(0)
  at.file('gated.ts', gated(gate))
  const cut = await at.run(['verify', '--program', 'gated.ts', '--max-states', '3'])
  expect([cut.code, cut.stdout]).toEqual([1, expect.stringContaining('· never unapproved\n\n3 states explored\nnot decided (·)')])
})

confined('frontier: what can come, and after events with details', async () => {
  using at = nest()
  at.file('gated.ts', gated(gate))
  const risky = '{ "type": "thought", "detail": { "command": "make" } }'
  const asked = ['frontier', '--program', 'gated.ts']
  const after = await at.run([...asked, '--after', risky])
  expect(after.stdout).toContain('blocked:  act, by gate\n')
  expect((await at.run([...asked, '--after', risky, '--after', 'allow'])).stdout).toContain('can come: act, from loop\n')
  const json = await at.run([...asked, '--after', 'allow', '--json'])
  expect(JSON.parse(json.stdout).enabled).toContainEqual({ type: 'thought', detail: { command: 'ls' }, by: 'handlers' })
})

confined(
  'what is wrong is said with the value and what to do: exit 2',
  async () => {
    using at = nest()
    at.file('typo.ts', 'export const programm = { threads: {} }')
    at.file('broken.ts', 'export default {')
    at.file('steps.ts', "export default { threads: { one: { steps: [{ waitsFor: 'a' }] } } }")
    at.file('throws.ts', "throw new Error('at import')")
    at.file('gated.ts', gated(gate))
    const wrong: [string[], string][] = [
      [
        ['verify', '--program', 'typo.ts'],
        'it exports programm; export { threads, publicEvents, never } as default or as "program"; did you mean "program"?',
      ],
      [['verify', '--program', 'broken.ts'], 'broken.ts: '],
      [['verify', '--program', 'nowhere.ts'], 'nowhere.ts: '],
      [
        ['verify', '--program', 'steps.ts'],
        'steps.ts: bSync: "waitsFor"; a step has request, waitFor, block, interrupt; did you mean "waitFor"?',
      ],
      [['verify', '--program', 'throws.ts'], 'throws.ts: at import'],
      [['frontier', '--program', 'gated.ts', '--after', 'alow'], '"alow" is not an event of this program'],
      [['frontier'], 'name a program with --program FILE'],
    ]
    for (const [words, message] of wrong) {
      const { code, stdout, stderr } = await at.run(words)
      expect([words.join(' '), code, stdout, stderr]).toEqual([words.join(' '), 2, '', expect.stringContaining(message)])
      expect(stderr).not.toContain('this is a bug')
    }
  },
  60_000,
)

confined('the module can neither write, nor read our home, nor reach the network, nor see our environment', async () => {
  using at = nest()
  at.config('[limits]\ntool_timeout_s = 20\n')
  using server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  at.file(
    'foreign.ts',
    `
    import { spawnSync } from 'node:child_process'
    import { readFileSync, writeFileSync } from 'node:fs'
    const tried = (what: () => unknown) => { try { what(); return 'done' } catch { return 'refused' } }
    const wrote = tried(() => writeFileSync(${JSON.stringify(join(at.workspace, 'written'))}, 'x'))
    const read = tried(() => readFileSync(${JSON.stringify(join(at.home, '.braidclaw/config.toml'))}))
    const connect = spawnSync('/bin/bash', ['-c', 'exec 3<>/dev/tcp/127.0.0.1/${server.port}'])
    const reached = connect.status === 0 ? 'done' : 'refused'
    export default { threads: { one: { steps: [{ request: { type: [wrote, read, reached, typeof process.env.SECRET].join(' ') } }] } }}
  `,
  )
  const asked = (words: string, ...more: string[]) =>
    at.run(['frontier', '--program', 'foreign.ts', '--after', words, ...more], { env: { SECRET: 'x' } })
  expect((await asked('refused refused refused undefined')).code).toBe(0)
  expect(existsSync(join(at.workspace, 'written'))).toBe(false)
  expect(readFileSync(join(at.home, '.braidclaw/config.toml'), 'utf8')).toContain('tool_timeout_s')
  expect((await asked('done done done string', '--sandbox', 'none')).code).toBe(0)
})

confined('a function that never returns is ended', async () => {
  using at = nest()
  at.config('[limits]\ntool_timeout_s = 1\n')
  at.file('ever.ts', "export default { threads: { one: { steps: [{ waitFor: () => { for (;;); } }] } }, events: ['a'] }")
  expect(await at.run(['verify', '--program', 'ever.ts'])).toEqual({
    code: 1,
    stdout: '',
    stderr: 'error: ever.ts: no answer after 1 s (limits.tool_timeout_s); does a function never return?\n',
  })
})

test('without a sandbox when the user says so', async () => {
  using at = nest()
  at.file('gated.ts', gated(gate))
  const here = await at.run(['verify', '--program', 'gated.ts', '--sandbox', 'none'])
  expect([here.code, here.stderr]).toEqual([0, ''])
})
