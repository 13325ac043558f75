# Commits what must not be committed, past the work tree where that is closed.
set -e
text=$(echo text | git hash-object -w --stdin)
git update-index --add --cacheinfo "100644,$text,.env.production"
git update-index --add --cacheinfo "100644,$text,docs/by_commit.md"
echo 'token = KEY' > src/commits/key.txt
ln -s /etc/passwd src/commits/link
git add src/commits/key.txt src/commits/link
mkdir src/commits/module
git update-index --add --cacheinfo "160000,$(git rev-parse HEAD),src/commits/module"
git commit -q -m 'feat(task-003): add much'
echo committed
