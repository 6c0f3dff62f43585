import { expect, test } from 'bun:test'
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { given, needs } from '../../../test/support/needs.ts'
import { place } from '../fixture.ts'
import { fixedPath } from '../trial-key.ts'

const NOBODY = 65534
const canSwitch = needs('bwrap', 'setpriv', 'git') && given(process.getuid?.() === 0, 'root')

const script = (fixture: string) => `
const { confined } = await import(${JSON.stringify(fixture)})
const { readdirSync, readFileSync } = require('node:fs')
const box = await confined()
const said = async (script, more) => {
  const { view, code, stdout } = await box.change(script, more)
  const changes = await view.changes()
  await view.keepCaches()
  view.drop()
  return { code, stdout, paths: changes.map(({ path, after }) => path.replace(box.root, '') + ' ' + (after?.mode ?? 0).toString(8)), caches: await view.caches() }
}
Bun.spawnSync(['sh', '-c', 'git init -q . && echo a > a && git add a && git -c user.name=n -c user.email=e@x commit -qm one'], { cwd: box.workspace })
const common = box.root + '/git'
Bun.spawnSync(['git', 'init', '-q', '--bare', common])
const results = {
  uid: await said('id -u; stat -c %u a; git diff-files; git status --short'),
  shut: await said('mkdir -p shut/in; echo x > shut/in/file; chmod 0 shut/in/file shut/in shut'),
  cache: await said('mkdir __pycache__; echo x > __pycache__/a; chmod 500 __pycache__'),
  again: await said('cat __pycache__/a; rm -rf __pycache__ a'),
  outside: await said('cd ../git && echo x > HEAD && mkdir refs/shut && chmod 0 refs/shut && rm description && stat -c %u HEAD config', { outside: { root: common, git: common, common, hidden: [] } }),
  kept: readFileSync(common + '/HEAD', 'utf8').startsWith('ref: '),
}
box[Symbol.dispose]()
console.log(JSON.stringify({ ...results, gone: readdirSync(process.env.TMPDIR).filter((name) => name.startsWith('braidclaw-sandbox')) }))`

test.if(canSwitch)(
  'an ordinary user has private views as well: the same owner inside, folders without permissions, and nothing left behind',
  async () => {
    using at = place()
    const home = join(at.root, 'user')
    mkdirSync(home)
    chownSync(home, NOBODY, NOBODY)
    chmodSync(at.root, 0o755)
    const program = join(home, 'bun')
    const source = join(import.meta.dir, '../..')
    await Bun.$`cp --reflink=auto ${process.execPath} ${program} && cp -r ${source}/sandbox ${source}/security ${source}/kit ${home} && chmod -R a+rX ${home}`
    const user = ['setpriv', '--reuid', String(NOBODY), '--regid', String(NOBODY), '--clear-groups']
    const words = [...user, program, '--config=/dev/null', '-e', script(join(home, 'sandbox/fixture.ts'))]
    const child = Bun.spawn(words, { env: { PATH: fixedPath, HOME: home, TMPDIR: home }, cwd: home, stdio: ['ignore', 'pipe', 'pipe'] })
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    expect(stderr).toBe('')
    expect(JSON.parse(stdout)).toEqual({
      uid: { code: 0, stdout: '65534\n65534\n', paths: [], caches: [] },
      shut: { code: 0, stdout: '', paths: ['shut 0', 'shut/in 0', 'shut/in/file 0'], caches: [] },
      cache: { code: 0, stdout: '', paths: [], caches: ['__pycache__'] },
      again: { code: 0, stdout: 'x\n', paths: ['a 0'], caches: ['__pycache__'] },
      outside: { code: 0, stdout: '65534\n65534\n', paths: ['/git/HEAD 644', '/git/description 0', '/git/refs/shut 0'], caches: [] },
      kept: true,
      gone: [],
    })
  },
  120_000,
)
