import { describe, expect, test } from 'bun:test'
import { verdictOf } from '../policy.fixture.ts'

const npm = ['registry.npmjs.org']
const pypi = ['pypi.org', 'files.pythonhosted.org']

test.each<[string, readonly string[]]>([
  ['curl https://a.org/x', ['a.org']],
  ['curl -fsSL -o out.txt -H "Host: h.org" https://A.org:443/x?y=b.org', ['a.org']],
  ['curl a.org/x', ['a.org']],
  ['curl -O https://a.org/x.tgz', ['a.org']],
  ['curl --url=https://a.org/x', ['a.org']],
  ['curl https://user:word@a.org/', ['a.org']],
  ['curl "https://a.org/$id"', ['a.org']],
  ['env X=1 timeout 5 curl https://a.org | jq .', ['a.org']],
  ["bash -c 'wget https://a.org && curl https://b.org'", ['a.org', 'b.org']],
  ['wget -O out.html https://a.org/', ['a.org']],
  ['git clone https://a.org/r.git', ['a.org']],
  ['git -C sub fetch https://a.org/r.git main', ['a.org']],
  ['npm ci', npm],
  ['npm i -D vitest', npm],
  ['npm i x --registry https://r.org/npm/', ['r.org']],
  ['npm ci --registry=http://127.0.0.1:4873', ['127.0.0.1']],
  ['npx --registry https://r.org x', ['r.org']],
  ['pip install -i https://r.org/simple x', ['r.org']],
  ['pip install --extra-index-url https://r.org/simple x', [...pypi, 'r.org']],
  ['npm install --registry "$x"', npm],
  ['npx vitest run', npm],
  ['bun add x', npm],
  ['yarn', npm],
  ['pip install -r requirements.txt', pypi],
  ['pip3.12 install x', pypi],
  ['python3 -m pip install x', pypi],
  ['uv sync', pypi],
  ['cargo add serde', ['index.crates.io', 'static.crates.io', 'crates.io']],
  ['go mod tidy', ['proxy.golang.org', 'sum.golang.org']],
])('%s reaches %j', (command, hosts) => expect(verdictOf(command).hosts).toEqual(hosts))

describe('a program of node_modules/.bin', () => {
  const installed = { cwd: '/ws', isFile: (path: string) => path === '/ws/node_modules/.bin/tsc' }
  const reaches = (command: string) => verdictOf(command, installed).hosts

  test('is run by npx and the like without a network, also from a folder below', () => {
    for (const command of [
      'npx tsc',
      'npx --no-install tsc --noEmit',
      'npx -y tsc',
      'bunx tsc',
      'bun x tsc',
      'npm exec -- tsc -p .',
      'npm x tsc',
      'cd src && npx tsc',
      'npx tsc --version',
    ])
      expect([command, reaches(command)]).toEqual([command, []])
  })

  test('that is not there, in another version, or named by another option is fetched', () => {
    for (const command of [
      'npx vitest',
      'npx tsc@5',
      'npx -p typescript tsc',
      'npx --package=x tsc',
      'npx -c tsc',
      'npx "$x"',
      'npx ./tsc',
      'npx @a/tsc',
      'pnpx tsc',
      'npm install tsc',
      'npx vitest --version',
      'npx',
      'cd "$x" && npx tsc',
    ])
      expect([command, reaches(command)]).toEqual([command, npm])
    expect(verdictOf('npx tsc').hosts).toEqual(npm)
    expect(verdictOf('npx tsc', { isFile: (path) => path === '/node_modules/.bin/tsc' }).hosts).toEqual(npm)
    expect(reaches('npx --no-install vitest')).toEqual([])
  })
})

test.each([
  'npm test',
  'npm run build',
  'npm --version',
  'npm install --offline',
  'cargo build',
  'cargo test --offline',
  'go build ./...',
  'pip --version',
  'pip list',
  'python3 -m http.server',
  'echo https://a.org',
  'grep -r https://a.org src',
  'git log https://a.org',
  'git remote add origin https://a.org/r.git',
  'curl "$url"',
  'curl "https://$host/x"',
  'curl "https://a.org$x"',
  'curl --help',
])('%s reaches no host', (command) => expect(verdictOf(command).hosts).toEqual([]))
