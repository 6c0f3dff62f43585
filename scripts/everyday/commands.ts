/** Lists 153 commands of everyday work with code, in the order of the page. */

const plain = String.raw`ls
ls -la src
pwd
date +%F
echo hello
whoami
cat README.md
head -n 20 src/main.ts
tail -n 5 data.csv
wc -l src/*.ts
grep -rn TODO src
rg -n "export" src
rg --files -g '*.ts'
find . -name '*.ts' -not -path './node_modules/*'
find src -type f -exec wc -l {} +
find . -name '*.log' -print0 | xargs -0 ls -l
sort -u names.txt | uniq -c | sort -rn | head
cut -d, -f1 data.csv | sort | uniq
awk -F, '{sum += $2} END {print sum}' data.csv
sed -n '1,3p' src/main.ts
diff names.txt names2.txt || true
stat README.md
file a.bin
du -sh .
df -h .
md5sum a.bin
sha256sum README.md
xxd a.bin | head
base64 a.bin | head -c 40
jq .scripts package.json
jq -r '.dependencies | keys[]' package.json
tr a-z A-Z < names.txt
column -t -s, data.csv
cat names.txt | grep -v x | wc -l
for f in src/*.ts; do echo "$f"; done
while read -r line; do echo "$line"; done < names.txt
if [ -f package.json ]; then echo yes; fi
cd src && ls
test -d src && echo there
n=$(wc -l < names.txt); echo $((n + 1))
uname -a
which node
tar tf old.tar
git status
git status --short
git diff
git diff --stat HEAD~1
git log --oneline -5
git show HEAD:README.md
git blame README.md
git branch -a
git branch --show-current
git rev-parse --short HEAD
git ls-files | wc -l
git stash list
git tag -l
git config --get user.name
node --version
python3 --version
node x.js
node -e 'console.log(1 + 1)'
node --test
python3 x.py
python3 -c 'print(6 * 7)'
python3 -m unittest
python3 -m json.tool package.json
python3 -m venv --without-pip env
pytest -q
tsc --noEmit
npx tsc --version
npx vitest run
npm test
npm run build
npm run lint -- --fix
npm ls --depth=0
npm install
npm ci
npm install --save-dev left-pad
npm outdated
npm version --no-git-tag-version patch
npm pack
pip install -r requirements.txt
pip list
cargo build
cargo test
cargo add serde
go build ./...
go test ./...
go mod tidy
gcc -o hello hello.c && ./hello
gcc -Wall -c hello.c
g++ -std=c++20 -o hi hi.cpp
cmake -S cm -B cm/build
make
make -j4 test
make clean
java -version
bash script.sh
sh script.sh
chmod +x script.sh
./tool.sh
A=1 node x.js
NODE_ENV=test npm test
npm test 2>&1 | tail -5
time make
timeout 20 npm test
env FOO=bar python3 x.py
bash -c 'ls | wc -l'
bash -euo pipefail -c 'node x.js | tail -1'
curl -s https://example.com
wget -q https://example.com/a.tgz
sed -i 's/hello/hallo/' README.md
perl -pi -e 's/one/1/' names.txt
mkdir -p build/out
touch notes.md
cp README.md copy.md
cp -r src backup
mv names2.txt names3.txt
rm names.txt
rm -rf build
rmdir empty
find . -name '*.tmp' -delete
truncate -s 0 app.log
ln -s README.md link.md
echo 'a: 1' > conf.yml
printf '%s\n' a b >> names.txt
tee out.txt < names.txt
sort -o names.txt names.txt
cat > notes.md <<'E'
# Notes
E
python3 - <<'E'
open('made.txt', 'w').write('by python')
E
patch -p1 < fix.patch
tar czf out.tar.gz src
tar xf old.tar
zip -qr out.zip src
unzip -qo old.zip
sqlite3 new.db 'create table t(a); insert into t values(1); select * from t'
dd if=/dev/zero of=big.bin bs=1k count=1
git add -A
echo edit >> README.md && git commit -am 'a change'
git checkout -b feature/x
git switch -c other
git stash
git tag v1.0
git merge side
git rebase side
git mv README.md READ.md
git rm --cached app.log
git restore README.md
git init sub
git fetch origin
git pull --rebase
git push origin main
git clone https://example.com/a.git`

/** A line that continues the command before it: the body of a here-document. */
const isContinued = (lines: readonly string[]) => /<<'E'$/m.test(lines[0] ?? '') && lines.at(-1) !== 'E'

export const everydayCommands: readonly string[] = plain
  .split('\n')
  .reduce<string[][]>((all, line) => {
    const last = all.at(-1)
    if (last && isContinued(last)) last.push(line)
    else all.push([line])
    return all
  }, [])
  .map((lines) => lines.join('\n'))
