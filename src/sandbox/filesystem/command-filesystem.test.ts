import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isDeep } from '../../../test/support/tier.ts'
import { confined, hasBubblewrap, type Place, place } from '../fixture.ts'
import { fixedPath } from '../trial-key.ts'
import { cacheUse, tidyCaches } from './command-home.ts'
import { prepareEtc } from './system-files.ts'
import { findToolchains } from './toolchains.ts'

const real = test.if(hasBubblewrap())

function plant(root: string, files: { readonly [path: string]: string }): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text, { mode: text.startsWith('#!') ? 0o755 : 0o644 })
  }
}

const says = (text: string) => `#!/bin/sh\necho ${text}\n`

/** A home folder with a node of nvm, tools of uv, and others. */
function homeWithTools({ settings: { home } }: Place): string {
  plant(home, {
    '.nvm/versions/node/v22.1.0/bin/node': says('node of nvm'),
    '.nvm/versions/node/v22.1.0/lib/node_modules/npm/npm-cli.js': '// npm',
    '.local/share/uv/tools/ruff/bin/ruff': '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/../words"\n',
    '.local/share/uv/tools/ruff/words': 'ruff of uv\n',
    '.local/share/uv/credentials/store.toml': 'canary-token',
    '.local/share/keyrings/login.keyring': 'canary-token',
    '.local/bin/plain': says('plain'),
    '.cargo/bin/cargo': says('cargo'),
    '.cargo/credentials.toml': 'canary-token',
    '.rustup/toolchains/stable/bin/rustc': says('rustc'),
    '.rustup/settings.toml': 'version = "12"',
    '.npm-global/bin/tool': says('tool'),
    '.npm-global/lib/x.js': '',
    '.npm-global/.npmrc': '_authToken=canary-token',
    '.ssh/id_rsa': 'canary-token',
    'notes.txt': 'canary-token',
  })
  symlinkSync('../share/uv/tools/ruff/bin/ruff', join(home, '.local/bin/ruff'))
  symlinkSync('../../notes.txt', join(home, '.local/bin/notes'))
  const folders = ['.nvm/versions/node/v22.1.0/bin', '.local/bin', '.cargo/bin', '.npm-global/bin', 'gone/bin']
  return [...folders.map((name) => join(home, name)), home, '/usr/bin', 'relative'].join(':')
}

describe("the user's tools", () => {
  test('are found with what their links lead to, and nothing else of the home folder', () => {
    using at = place()
    const { home } = at.settings
    const { mounts, path, secrets, env } = findToolchains({ path: homeWithTools(at), home, except: [at.workspace] })
    const within = (all: readonly string[]) => all.map((one) => one.slice(home.length + 1)).toSorted()
    expect(within(mounts)).toEqual([
      ...['.cargo/bin', '.local/bin', '.local/share/uv', '.npm-global', '.nvm/versions', '.rustup/settings.toml', '.rustup/toolchains'],
    ])
    expect(within(path)).toEqual(['.cargo/bin', '.local/bin', '.npm-global/bin', '.nvm/versions/node/v22.1.0/bin'])
    expect(within(secrets)).toEqual(['.local/share/uv/credentials', '.npm-global/.npmrc'])
    expect(env).toEqual({ RUSTUP_HOME: join(home, '.rustup'), NVM_DIR: join(home, '.nvm') })
  })

  real('run, cannot be changed, and tell no secret', async () => {
    using ground = place()
    const { home } = ground.settings
    using box = await confined({ home, userPath: homeWithTools(ground) })
    const { stdout } = await box.run('node; ruff; plain; cargo; tool')
    expect(stdout).toBe('node of nvm\nruff of uv\nplain\ncargo\ntool\n')
    const { stdout: left } = await box.run(
      `cd ${home}; echo x >> .local/bin/plain; rm -rf .nvm; touch .cargo/bin/new; find . -type f -exec cat {} + 2>&1; ls -A`,
    )
    expect(left).not.toContain('canary-token')
    expect(left).toContain('Permission denied')
    expect(existsSync(join(home, '.nvm/versions/node/v22.1.0/bin/node'))).toBe(true)
    expect(readdirSync(join(home, '.cargo/bin'))).toEqual(['cargo'])
  })
})

describe('the home folder of a command', () => {
  real('is private: nothing of it reaches the workspace, and only caches stay for the next command of this workspace', async () => {
    using box = await confined()
    const { stdout } = await box.run(
      'echo x > ~/.npmrc; mkdir -p ~/.cache/pip "$npm_config_cache" && echo kept > ~/.cache/pip/a; echo $HOME',
    )
    expect(stdout).toBe('/tmp\n')
    expect(readdirSync(box.workspace)).toEqual([])
    expect(await box.run('cat ~/.cache/pip/a; ls ~/.npmrc')).toMatchObject({ stdout: 'kept\n', code: 2 })
    using other = await confined({ stateHome: box.settings.stateHome })
    expect((await other.run('ls ~/.cache')).stdout).toBe('')
  })

  real(
    'keeps npm out of the workspace',
    async () => {
      if (!Bun.which('npm', { PATH: fixedPath })) return console.log('not tried here: needs npm')
      using box = await confined()
      const steps = `echo '{"name":"a","version":"1.0.0"}' > package.json; mkdir d; echo '{"name":"d","version":"1.0.0"}' > d/package.json; npm install --silent --offline --no-audit --no-fund ./d`
      expect(await box.run(steps)).toMatchObject({ code: 0, stderr: '' })
      expect(readdirSync(box.workspace).toSorted()).toEqual(['d', 'node_modules', 'package-lock.json', 'package.json'])
    },
    120_000,
  )

  test('its caches are measured, and removed when the workspace is gone or they are too large', () => {
    using at = place()
    const { stateHome } = at.settings
    const cache = (name: string, workspace: string, files: { readonly [path: string]: string }) =>
      plant(join(stateHome, 'run/command-caches', name), { workspace, ...files })
    cache('a', at.workspace, { 'caches/npm/x': 'x'.repeat(300_000), 'caches/pip/y': 'y'.repeat(20_000) })
    cache('b', join(at.root, 'gone'), { 'caches/npm/x': 'x' })
    expect(cacheUse(stateHome).map(({ workspace }) => workspace)).toEqual([at.workspace, join(at.root, 'gone')])
    tidyCaches(stateHome, { limit: 100_000 })
    expect(cacheUse(stateHome).map(({ workspace, bytes }) => [workspace, bytes < 100_000])).toEqual([[at.workspace, true]])
    expect(existsSync(join(stateHome, 'run/command-caches/a/caches/pip/y'))).toBe(true)
    const old = new Date(Date.now() - 40 * 24 * 3_600_000)
    utimesSync(join(stateHome, 'run/command-caches/a/workspace'), old, old)
    tidyCaches(stateHome)
    expect(cacheUse(stateHome)).toHaveLength(1)
    tidyCaches(stateHome, { now: Date.now() + 2 * 24 * 3_600_000 })
    expect(cacheUse(stateHome)).toEqual([])
  })
})

describe('/etc inside', () => {
  const user = { uid: 1000, gid: 1000, name: 'ann', home: '/tmp' }

  test('is made once from what everybody may read, again after a change, and holds no private file', () => {
    using at = place()
    const [root, run] = [join(at.root, 'etc'), join(at.root, 'run')]
    plant(root, {
      'ssl/certs/a.pem': 'certificate',
      'ssl/private/key.pem': 'canary',
      'ssl/certs/own.pem': 'canary',
      shadow: 'canary',
      passwd: 'bob:x',
      'machine-id': 'canary',
      'java-21/conf/x': 'java',
    })
    chmodSync(join(root, 'ssl/certs/own.pem'), 0o600)
    symlinkSync('/usr/share/zoneinfo/Europe/Berlin', join(root, 'localtime'))
    const first = prepareEtc({ run, user, root }) ?? ''
    const all = readdirSync(first, { recursive: true, encoding: 'utf8' }).toSorted()
    expect(all).toEqual([
      'group',
      'hostname',
      'hosts',
      'java-21',
      'java-21/conf',
      'java-21/conf/x',
      'localtime',
      'nsswitch.conf',
      'passwd',
      'resolv.conf',
      'ssl',
      'ssl/certs',
      'ssl/certs/a.pem',
    ])
    expect(prepareEtc({ run, user, root })).toBe(first)
    expect(prepareEtc({ run, user: { ...user, uid: 1001 }, root })).not.toBe(first)
    writeFileSync(join(root, 'mime.types'), 'text/plain txt')
    expect(readdirSync(prepareEtc({ run, user, root }) ?? '')).toContain('mime.types')
    for (let changes = 0; changes < 6; changes++) {
      writeFileSync(join(root, 'services'), 'x'.repeat(changes))
      prepareEtc({ run, user, root })
    }
    expect(readdirSync(run)).toHaveLength(4)
  })

  real('tells nothing of the users and services of this machine', async () => {
    using box = await confined()
    const { stdout } = await box.run(
      'id -un; getent passwd | wc -l; getent hosts localhost | wc -l; ls /etc/shadow /etc/machine-id /etc/ssh /etc/cron.d 2>/dev/null; cat /etc/resolv.conf | grep -c nameserver',
    )
    const own = Bun.spawnSync(['id', '-un'], { env: { PATH: fixedPath } })
      .stdout.toString()
      .trim()
    expect(stdout).toMatch(new RegExp(`^${own}\\n[1-3]\\n1\\n0\\n$`))
  })
})

const programs: readonly (readonly [needs: string, script: string, says: string])[] = [
  [
    'node',
    `node -e "console.log(os.userInfo().homedir, new Intl.DateTimeFormat('en').format(0).length > 5, crypto.randomUUID().length)"`,
    '/tmp true 36',
  ],
  [
    'python3',
    `python3 -c "import ssl, pwd, os, sqlite3, ctypes, subprocess; print(len(ssl.create_default_context().get_ca_certs()) > 0, pwd.getpwuid(os.getuid()).pw_dir)"`,
    'True /tmp',
  ],
  [
    'git',
    'git init -q r && cd r && echo a > a && git add a && git -c user.name=a -c user.email=a@b commit -qm m && git log --format=%s',
    'm',
  ],
  ['gcc', `printf '#include <stdio.h>\\nint main(){puts("c");}' > c.c && gcc c.c -o c && ./c`, 'c'],
  ['make', `printf 'all:\\n\\t@echo made\\n' > Makefile && make`, 'made'],
  ['perl', `perl -MSocket -MPOSIX -e 'print getpwuid($<) ? "known\\n" : "unknown\\n"'`, 'known'],
  [
    'java',
    `printf 'class A { public static void main(String[] a) throws Exception { javax.net.ssl.SSLContext.getDefault(); System.out.println("java"); } }' > A.java && java A.java`,
    'java',
  ],
  ['npm', `echo '{"scripts":{"x":"echo run"}}' > package.json && npm run --silent x`, 'run'],
  ['sqlite3', 'sqlite3 x.db "create table t(a); insert into t values (7); select a from t"', '7'],
]

describe('what works inside', () => {
  const everywhere = ['python3', 'git', 'make', 'perl']

  real.each(programs.filter(([program]) => isDeep || everywhere.includes(program ?? '')))(
    '%s',
    async (needs, script, says) => {
      if (!Bun.which(needs, { PATH: fixedPath })) return console.log(`not tried here: needs ${needs}`)
      using box = await confined({ limits: { memoryBytes: 4 * 2 ** 30, processes: 512, fileBytes: 2 ** 30, cpuSeconds: 60 } })
      const { stdout, stderr } = await box.run(script)
      expect({ stdout, stderr }).toEqual({ stdout: `${says}\n`, stderr: '' })
    },
    120_000,
  )
})

describe('a forbidden command', () => {
  const forbiddenCommands = ['rm', 'dd', 'mkfs', 'shutdown', 'reboot']

  real('refuses, whatever starts it and wherever it lies', async () => {
    using ground = place()
    plant(ground.settings.home, { '.cargo/bin/rm': '#!/bin/sh\nunlink "$2"\n' })
    using box = await confined({ home: ground.settings.home, userPath: join(ground.settings.home, '.cargo/bin'), forbiddenCommands })
    writeFileSync(join(box.workspace, 'canary'), 'x')
    const ways = [
      'rm -f canary',
      '/bin/rm -f canary',
      '/usr/bin/rm -f canary',
      `${ground.settings.home}/.cargo/bin/rm -f canary`,
      'env - rm canary',
      "bash -euo pipefail -c 'rm -f canary'",
      'sh -c "$(echo r)m -f canary"',
      'echo canary | xargs rm',
      'find . -name canary -exec rm {} +',
      'perl -e "exit(system(q(rm), q(canary)) >> 8)"',
      'ln -s /bin/rm y && ./y canary',
      'dd if=/dev/zero of=canary count=1 2>&1',
    ]
    for (const way of ways) {
      const { code } = await box.run(way)
      expect([way, code === 0, existsSync(join(box.workspace, 'canary'))]).toEqual([way, false, true])
    }
    expect(await box.run('rm -f canary')).toMatchObject({
      code: 126,
      stderr: 'rm is forbidden (security.forbidden_commands); nothing was run. Use the tool file_delete, with recursive for a folder\n',
    })
    expect((await box.run('reboot')).stderr).toContain('reboot is forbidden')
    expect((await box.run('mkfs.ext4 x')).stderr).toContain('mkfs.ext4 is forbidden')
    expect((await box.run('unlink canary')).code).toBe(0)
  })

  real('that is the shell of the sandbox cannot be refused there, and other commands go on', async () => {
    using box = await confined({ forbiddenCommands: ['sh', 'dash', 'rm'] })
    expect(await box.run('echo works')).toMatchObject({ code: 0, stdout: 'works\n' })
  })
})
