/** A sandbox that is there and does not work: doctor, the list of tools, the start and what the model is offered say the same, because it was tried. */

import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasBubblewrap } from '../../src/sandbox/fixture.ts'
import { trialKey } from '../../src/sandbox/trial-key.ts'
import type { Nest } from '../support/cli.ts'
import { call, home, turn } from '../support/turns.ts'

const canReplace = process.getuid?.() === 0 && hasBubblewrap() && Bun.spawnSync(['unshare', '-m', 'true']).success
const canNest = hasBubblewrap() && Bun.spawnSync(['unshare', '-Ur', 'true']).success
if (!canReplace || !canNest) console.warn('some ways in which a sandbox fails are not tried here (unshare, root and bubblewrap are needed)')

/** Another program in the place of bubblewrap, for this process and its children alone. */
function instead(at: Nest, script: string): readonly string[] {
  const fake = join(at.dir, 'fake-bwrap')
  writeFileSync(fake, `#!/bin/sh\n${script}\n`)
  chmodSync(fake, 0o755)
  return ['unshare', '-m', 'sh', '-c', `mount --bind ${fake} "$(command -v bwrap)"; exec "$@"`, 'sh']
}

const noUserNamespaces = ['unshare', '-Ur', 'sh', '-c', 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', 'sh']

/** What doctor, the list of tools, the start and a command say of the shell. */
async function told(at: Nest, through: readonly string[] = []) {
  const [doctor, list, json, turned] = await Promise.all([
    at.run(['doctor'], { through }),
    at.run(['tool', 'list'], { through }),
    at.run(['tool', 'list', '--json'], { through }),
    // Calls the shell as a model would that was told of it.
    turn(at, [call('shell', { command: 'echo it-ran' }), { text: 'So: {{last_tool_result}}' }], ['--approve-all-medium'], { through }),
  ])
  const rows: { name: string; active: boolean; why?: string }[] = JSON.parse(json.stdout)
  return {
    doctor: { code: doctor.code, line: /^.*sandbox .*$/m.exec(doctor.stdout)?.[0] ?? '', all: doctor.stdout },
    list: /^.*shell .*$/m.exec(list.stdout)?.[0] ?? '',
    row: rows.find(({ name }) => name === 'shell'),
    start: turned.stderr,
    said: turned.stdout,
  }
}

const cases: readonly (readonly [name: string, can: boolean, through: (at: Nest) => readonly string[], says: string, advises: string])[] = [
  ['ends with 1 and says nothing', canReplace, (at) => instead(at, 'exit 1'), 'a trial ended with 1', ''],
  [
    'is kept from user namespaces by AppArmor',
    canReplace,
    (at) => instead(at, 'echo "bwrap: setting up uid map: Permission denied" >&2; exit 1'),
    'bwrap: setting up uid map: Permission denied',
    [
      '                sudo apt install apparmor-profiles',
      '                sudo cp /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/',
      '                sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict',
      '',
    ].join('\n'),
  ],
  [
    'gets no user namespaces',
    canNest,
    () => noUserNamespaces,
    'namespace',
    '                sudo sysctl -w user.max_user_namespaces=10000\n',
  ],
]

describe.each(cases)('bubblewrap that %s', (_, can, through, says, advises) => {
  test.if(can)('is no sandbox to anybody, and no command runs', async () => {
    using at = home()
    // As it is in most homes: it worked before.
    await turn(at, [{ text: 'over' }])
    const { doctor, list, row, start, said } = await told(at, through(at))
    expect([doctor.code, doctor.line]).toEqual([1, expect.stringContaining('✗ sandbox')])
    expect(doctor.line).toContain(says)
    expect(doctor.all).toContain(advises)
    expect(list).toStartWith('- shell ')
    expect(list).toContain(says)
    expect(row).toMatchObject({ active: false, why: expect.stringContaining(says) })
    expect(start).toContain('shell tool off')
    expect(said).toContain('no sandbox, so no command runs')
  })
})

test.if(hasBubblewrap())('bubblewrap that works is a sandbox to everybody', async () => {
  using at = home()
  const { doctor, list, row, start, said } = await told(at)
  expect(doctor.line).toBe('✓ sandbox     bubblewrap works: a command was run in it')
  expect(list).toStartWith('  shell ')
  expect(row).toMatchObject({ active: true })
  expect(row).not.toHaveProperty('why')
  expect(start).not.toContain('shell tool off')
  expect(said).toContain('it-ran')
})

describe('that it works', () => {
  const kept = (at: Nest) => join(at.home, '.braidclaw/run/sandbox-works')
  const asks = (at: Nest, through: readonly string[] = []) => turn(at, [{ text: 'over' }], [], { through })

  test.if(canReplace)('is kept by a turn, so that the next one does not try again', async () => {
    using at = home()
    const log = join(at.dir, 'tries')
    const real = Bun.which('bwrap') ?? ''
    const counting = instead(at, `echo x >> ${log}; exec ${at.dir}/real "$@"`)
    const beside = ['unshare', '-m', 'sh', '-c', `touch ${at.dir}/real; mount --bind ${real} ${at.dir}/real; exec "$@"`, 'sh', ...counting]
    const count = () => (existsSync(log) ? readFileSync(log, 'utf8').length / 2 : 0)
    // Each turn sees a mount namespace of its own, which is part of what is kept; so both run in one.
    const twice = [...beside, 'sh', '-c', '"$@" && "$@"', 'sh']
    const ended = await turn(at, [{ text: 'over' }], [], { through: twice })
    expect([ended.code, count()]).toEqual([0, 1])
  })

  test.if(hasBubblewrap())('is kept for this very machine and process alone, and nowhere by doctor', async () => {
    using at = home()
    await at.run(['doctor'])
    expect(existsSync(kept(at))).toBe(false)
    await asks(at)
    expect(readFileSync(kept(at), 'utf8')).toBe(`${at.workspace}\n${trialKey()}`)
    expect(trialKey()).toContain(readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())
  })

  test.if(canReplace)('is forgotten when a command finds that it does not', async () => {
    using at = home()
    // Both turns in one mount namespace, and a bubblewrap that the first of them outlives unchanged.
    const switchable = instead(at, `[ -e ${at.dir}/off ] && exit 1; exec ${at.dir}/real "$@"`)
    const beside = ['unshare', '-m', 'sh', '-c', `touch ${at.dir}/real; mount --bind "$(command -v bwrap)" ${at.dir}/real; exec "$@"`, 'sh']
    const twice = ['sh', '-c', `"$@" && touch ${at.dir}/off && "$@"; test -e ${kept(at)} && echo kept`, 'sh']
    const script = [call('shell', { command: 'pwd' }), { text: 'So: {{last_tool_result}}' }]
    const { stdout } = await turn(at, script, ['--approve-all-medium'], { through: [...beside, ...switchable, ...twice] })
    expect(stdout).toContain('no sandbox, so no command runs')
    expect(stdout).not.toContain('kept')
  })

  test.if(hasBubblewrap())('is not looked at where there is no shell to offer', async () => {
    using at = home()
    at.config(
      readFileSync(join(at.home, '.braidclaw/config.toml'), 'utf8').replace('[channels.cli]\n', '[channels.cli]\ntools_allow = ["time"]\n'),
    )
    await asks(at)
    expect(existsSync(kept(at))).toBe(false)
  })
})
